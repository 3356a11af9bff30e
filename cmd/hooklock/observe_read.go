package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"hooklock/proxy"
	"hooklock/proxy/suggest"
)

// maxRecording bounds a file of recorded deliveries, in bytes.
const maxRecording = 512 << 20

// readDeliveries reads files, and the files in folders. left is how many entries are no deliveries.
func readDeliveries(names []string, path string) (all []*suggest.Delivery, left int, err error) {
	files := 0
	for _, name := range names {
		inside, err := filesAt(name)
		if err != nil {
			return nil, 0, err
		}
		if files += len(inside); files > maxRecorded {
			return nil, 0, fmt.Errorf("more than %d files: give fewer at a time", maxRecorded)
		}
		for _, file := range inside {
			found, without, err := readDeliveriesOf(file, path)
			if err != nil {
				return nil, 0, fmt.Errorf("%s: %w", file, err)
			}
			all, left = append(all, found...), left+without
		}
	}
	return all, left, nil
}

func readDeliveriesOf(file, path string) (all []*suggest.Delivery, left int, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, 0, err
	}
	if info.Size() > maxRecording {
		return nil, 0, fmt.Errorf("is longer than %d MiB: give the newest part of it", maxRecording>>20)
	}
	text, err := os.ReadFile(file) //nolint:gosec // the file that the user names
	if err != nil {
		return nil, 0, err
	}
	if all, left, err = readHAR(text); err == nil {
		return all, left, nil
	}
	if all, left = readLines(text); len(all) > 0 {
		return all, left, nil
	}
	r := parseRecorded(file, text)
	if d := r.deliveryOf(info.ModTime(), 0, 0, path); d != nil {
		return []*suggest.Delivery{d}, 0, nil
	}
	return nil, 1, nil
}

// har is what is read of a HAR file (HTTP Archive 1.2).
type har struct {
	Log *struct {
		Entries []struct {
			StartedDateTime time.Time
			Time            float64 // ms
			Request         struct {
				Method, URL string
				Headers     []struct{ Name, Value string }
				PostData    *struct{ Text, Encoding, MimeType string }
			}
			Response struct{ Status int }
		}
	}
}

func readHAR(text []byte) (all []*suggest.Delivery, left int, err error) {
	var archive har
	if err := json.Unmarshal(text, &archive); err != nil {
		return nil, 0, err
	}
	if archive.Log == nil {
		return nil, 0, errors.New("is no HAR file")
	}
	for i := range archive.Log.Entries {
		entry := &archive.Log.Entries[i]
		u, err := url.Parse(entry.Request.URL)
		if err != nil {
			left++
			continue
		}
		r := recorded{sample: proxy.Sample{Method: entry.Request.Method, Target: u.RequestURI()}}
		for _, h := range entry.Request.Headers {
			if !strings.HasPrefix(h.Name, ":") { // of HTTP/2
				r.sample.Header = append(r.sample.Header, [2]string{h.Name, h.Value})
			}
		}
		if post := entry.Request.PostData; post != nil {
			r.sample.Body = []byte(post.Text)
			if body, err := base64.StdEncoding.DecodeString(post.Text); post.Encoding == "base64" && err == nil {
				r.sample.Body = body
			}
		}
		d := r.deliveryOf(entry.StartedDateTime, time.Duration(entry.Time*float64(time.Millisecond)),
			entry.Response.Status, "/")
		if d == nil {
			left++
			continue
		}
		all = append(all, d)
	}
	return all, left, nil
}

// readLines reads JSON lines. left is how many are no deliveries; without any delivery the text is
// something else.
func readLines(text []byte) (all []*suggest.Delivery, left int) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var members map[string]any
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if json.Unmarshal(lines.Bytes(), &members) != nil {
			left++
			continue
		}
		if d := lineDelivery(members); d != nil {
			all = append(all, d)
		} else {
			left++
		}
	}
	return all, left
}

// lineDelivery makes a delivery of a line of an access log; nil if it has none.
func lineDelivery(line map[string]any) *suggest.Delivery {
	text := func(names ...string) string {
		for _, name := range names {
			switch v := line[name].(type) {
			case string:
				return v
			case float64:
				return fmt.Sprint(v)
			}
		}
		return ""
	}
	number := func(names ...string) (n float64) {
		_, _ = fmt.Sscan(text(names...), &n)
		return n
	}
	r := recorded{sample: proxy.Sample{Method: text("request_method", "method"),
		Target: text("request_uri", "target", "uri", "path"), Body: []byte(text("request_body", "body"))}}
	at, err := time.Parse(time.RFC3339, text("time_iso8601", "time", "@timestamp", "ts"))
	if seconds := number("msec"); err != nil && seconds > 0 {
		at, err = time.UnixMilli(int64(seconds*1000)), nil
	}
	if err != nil || !strings.HasPrefix(r.sample.Target, "/") || r.sample.Method == "" {
		return nil
	}
	for name, value := range line {
		header, ofRequest := strings.CutPrefix(name, "http_") // nginx's variables
		if text, is := value.(string); is && text != "" && (ofRequest || name == "content_type") {
			r.sample.Header = append(r.sample.Header, [2]string{strings.ReplaceAll(header, "_", "-"), text})
		}
	}
	if headers, is := line["headers"].(map[string]any); is {
		for name, value := range headers {
			r.sample.Header = append(r.sample.Header, [2]string{name, fmt.Sprint(value)})
		}
	}
	return r.deliveryOf(at, time.Duration(number("request_time")*float64(time.Second)), int(number("status")), "/")
}
