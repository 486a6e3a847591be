// A program of Go's standard library: JSON from standard input, a timer, and files.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		for _, path := range os.Args[1:] {
			text, err := os.ReadFile(path)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(3)
			}
			fmt.Printf("%s: %d bytes\n", path, len(text))
		}
		return
	}
	var names map[string]int
	if err := json.NewDecoder(os.Stdin).Decode(&names); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	began := time.Now()
	time.Sleep(5 * time.Millisecond)
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	fmt.Println(sorted, time.Since(began) >= 5*time.Millisecond)
}
