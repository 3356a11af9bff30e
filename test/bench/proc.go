//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is USER_HZ, the unit of /proc/PID/stat: 100 in every Linux that Go knows.
const ticksPerSecond = 100

// usage is what the kernel counted for some processes.
type usage struct {
	cpu time.Duration // utime and stime
	rss int64         // bytes
}

// groupUsage sums up the processes of a group: nginx works in children.
func groupUsage(group int) (usage, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return usage{}, err
	}
	var sum usage
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // ended meanwhile
		}
		if err != nil {
			return usage{}, err
		}
		g, u, err := parseStat(string(text))
		if err != nil {
			return usage{}, fmt.Errorf("read %s: %w", file, err)
		}
		if g == group {
			found = true
			sum.cpu += u.cpu
			sum.rss += u.rss
		}
	}
	if !found {
		return usage{}, fmt.Errorf("no process of group %d is left", group)
	}
	return sum, nil
}

// parseStat reads a line of /proc/PID/stat (proc_pid_stat(5)): process group, CPU time, resident memory.
func parseStat(text string) (int, usage, error) {
	end := strings.LastIndexByte(text, ')') // the name of a program may hold anything, also parentheses
	if end < 0 {
		return 0, usage{}, errors.New("no program name")
	}
	fields := strings.Fields(text[end+1:]) // fields[0] is the third of the manual
	const pgrp, utime, stime, rss = 5 - 3, 14 - 3, 15 - 3, 24 - 3
	if len(fields) <= rss {
		return 0, usage{}, fmt.Errorf("%d fields only", len(fields))
	}
	var n [4]int64
	for i, at := range []int{pgrp, utime, stime, rss} {
		var err error
		if n[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return 0, usage{}, err
		}
	}
	return int(n[0]), usage{
		cpu: time.Duration(n[1]+n[2]) * time.Second / ticksPerSecond,
		rss: n[3] * int64(os.Getpagesize()),
	}, nil
}
