from wsgiref import headers

NAME = "unnamed" if headers.Headers else ""
