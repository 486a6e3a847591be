(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 4)
  (data (i32.const 2048) "partly\n")
  (data (i32.const 2064) "it went wrong\n")
  (data (i32.const 2096) "note.txt")
  (data (i32.const 2112) "ok\ff")
  (data (i32.const 2128) "open /docs/in.txt: No such file or directory\n")
  (func $say (param $fd i32) (param $at i32) (param $bytes i32)
    (i32.store (i32.const 512) (local.get $at))
    (i32.store (i32.const 516) (local.get $bytes))
    (drop (call $write (local.get $fd) (i32.const 512) (i32.const 1) (i32.const 520))))
  (func $copy (param $fd i32) (local $bytes i32)
    (loop $more
      (i32.store (i32.const 512) (i32.const 65536))
      (i32.store (i32.const 516) (i32.const 32768))
      (if (call $read (local.get $fd) (i32.const 512) (i32.const 1) (i32.const 520)) (then (call $exit (i32.const 9))))
      (local.set $bytes (i32.load (i32.const 520)))
      (if (local.get $bytes) (then
        (call $say (i32.const 1) (i32.const 65536) (local.get $bytes))
        (br $more)))))
  (func $note
    (if (call $open (i32.const 3) (i32.const 0) (i32.const 2096) (i32.const 8) (i32.const 0)
        (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 524))
      (then (call $say (i32.const 2) (i32.const 2096) (i32.const 8)) (call $exit (i32.const 8))))
    (call $copy (i32.load (i32.const 524))))
  (func $length (param $at i32) (result i32) (local $bytes i32)
    (loop $more
      (if (i32.load8_u (i32.add (local.get $at) (local.get $bytes))) (then
        (local.set $bytes (i32.add (local.get $bytes) (i32.const 1)))
        (br $more))))
    (local.get $bytes))
  (func (export "_start") (local $what i32) (local $rounds i32)
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (drop (call $args (i32.const 16) (i32.const 1024)))
    (if (i32.ge_u (i32.load (i32.const 0)) (i32.const 2)) (then
      (local.set $what (i32.load8_u (i32.load (i32.const 20))))))
    (if (i32.eq (local.get $what) (i32.const 99)) (then (call $copy (i32.const 0))))
    (if (i32.eq (local.get $what) (i32.const 110)) (then (call $note)))
    (if (i32.eq (local.get $what) (i32.const 119)) (then
      (call $say (i32.const 1) (i32.load (i32.const 24)) (call $length (i32.load (i32.const 24))))))
    (if (i32.eq (local.get $what) (i32.const 102)) (then
      (call $say (i32.const 1) (i32.const 2048) (i32.const 7))
      (call $say (i32.const 2) (i32.const 2064) (i32.const 14))
      (call $exit (i32.const 3))))
    (if (i32.eq (local.get $what) (i32.const 108)) (then
      (call $say (i32.const 1) (i32.const 2048) (i32.const 7))
      (loop $ever (br $ever))))
    (if (i32.eq (local.get $what) (i32.const 112)) (then
      (call $say (i32.const 2) (i32.const 2128) (i32.const 45))
      (call $exit (i32.const 1))))
    (if (i32.eq (local.get $what) (i32.const 116)) (then
      (call $say (i32.const 1) (i32.const 2048) (i32.const 7))
      unreachable))
    (if (i32.eq (local.get $what) (i32.const 117)) (then (call $say (i32.const 1) (i32.const 2112) (i32.const 3))))
    (if (i32.eq (local.get $what) (i32.const 98)) (then
      (loop $more
        (call $say (i32.const 1) (i32.const 65536) (i32.const 32768))
        (local.set $rounds (i32.add (local.get $rounds) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $rounds) (i32.const 128))))))))
