//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: needs Linux: it reads the CPU time of processes from /proc")
	os.Exit(1)
}
