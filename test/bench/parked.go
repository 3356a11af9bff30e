//go:build linux

package main

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// parkedConnections is how many deliveries are parked at a time.
const parkedConnections = 64

// parked is how many events are parked at a Hooklock, as it says; -1 = it did not say.
func parked(h *child) int {
	client := http.Client{Timeout: time.Second}
	response, err := client.Get("http://" + h.admin + "/metrics")
	if err != nil {
		return -1
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "hooklock_parked_events "); ok {
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				return int(n)
			}
		}
	}
	return -1
}
