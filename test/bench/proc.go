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
	cpu time.Duration // in the program and in the kernel
	rss int64         // bytes
}

// process is a line of /proc/PID/stat.
type process struct {
	pid, parent, group int
	usage              // with what its children used that have ended
}

// groupUsage sums up the processes of a group and all that come from it: nginx works in children,
// and PostgreSQL in children with groups of their own.
func groupUsage(group int) (usage, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return usage{}, err
	}
	all := map[int]process{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // ended meanwhile
		}
		if err != nil {
			return usage{}, err
		}
		p, err := parseStat(string(text))
		if err != nil {
			return usage{}, fmt.Errorf("read %s: %w", file, err)
		}
		all[p.pid] = p
	}
	var sum usage
	found := false
	for _, p := range all {
		if descends(p, group, all) {
			found = true
			sum.cpu += p.cpu
			sum.rss += p.rss
		}
	}
	if !found {
		return usage{}, fmt.Errorf("no process of group %d is left", group)
	}
	return sum, nil
}

// descends tells whether p, or one whom it comes from, is of the group.
func descends(p process, group int, all map[int]process) bool {
	for range all { // the lines were not read at one moment: a number that was given anew must not lead in a circle
		if p.group == group {
			return true
		}
		parent, ok := all[p.parent]
		if !ok {
			return false
		}
		p = parent
	}
	return false
}

// parseStat reads a line of /proc/PID/stat (proc_pid_stat(5)).
func parseStat(text string) (process, error) {
	// the name of a program may hold anything, also parentheses
	name, end := strings.IndexByte(text, ' '), strings.LastIndexByte(text, ')')
	if end < 0 {
		return process{}, errors.New("no program name")
	}
	fields := append([]string{text[:name], ""}, strings.Fields(text[end+1:])...) // fields[0] is the first of the manual
	const pid, ppid, pgrp, utime, rss = 0, 4 - 1, 5 - 1, 14 - 1, 24 - 1
	if len(fields) <= rss {
		return process{}, fmt.Errorf("%d fields only", len(fields))
	}
	var n [8]int64
	// stime, and the same of children that have ended
	for i, at := range []int{pid, ppid, pgrp, rss, utime, utime + 1, utime + 2, utime + 3} {
		var err error
		if n[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return process{}, err
		}
	}
	return process{
		pid: int(n[0]), parent: int(n[1]), group: int(n[2]),
		usage: usage{
			cpu: time.Duration(n[4]+n[5]+n[6]+n[7]) * time.Second / ticksPerSecond,
			rss: n[3] * int64(os.Getpagesize()),
		},
	}, nil
}
