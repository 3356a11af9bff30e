package predecessor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// headSize is what the head takes of a file: one page, so that a write of it is cut by no signal. A
// process that is killed leaves the head before or the new one.
const headSize = 4 << 10

// headVersion is that of the format. A file of another one is left to the release that knows it.
const headVersion = 1

// head is the beginning of a file. It says whose sessions these are, and which file it is.
type head struct {
	Version int    `json:"version"`
	Boot    string `json:"boot"` // boot ID of the kernel that has the lock
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Cluster uint64 `json:"cluster"` // ID of the etcd cluster
	Prefix  string `json:"prefix"`
	// Sessions of the process: the one that it has, and the one before.
	Sessions []string `json:"sessions"`
}

// errUnreadable is of a file that has no head that this release knows.
var errUnreadable = errors.New("its head cannot be read")

// encode returns the head as it is in a file: its checksum, a blank, JSON, a line feed, and zeros.
func (h *head) encode() ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	page := make([]byte, 0, headSize)
	page = fmt.Appendf(page, "%016x %s\n", xxhash.Sum64(text), text)
	if len(page) > headSize {
		return nil, fmt.Errorf("the head has %d bytes, and %d is the most: shorten etcd.prefix", len(page), headSize)
	}
	return page[:headSize], nil
}

// decodeHead reads what encode has made. It returns errUnreadable for anything else.
func decodeHead(page []byte) (*head, error) {
	line, _, ended := bytes.Cut(page, []byte("\n"))
	sum, text, parts := bytes.Cut(line, []byte(" "))
	if !ended || !parts || string(sum) != fmt.Sprintf("%016x", xxhash.Sum64(text)) {
		return nil, errUnreadable
	}
	h := &head{}
	if err := json.Unmarshal(text, h); err != nil || h.Version != headVersion {
		return nil, errUnreadable
	}
	return h, nil
}

// fileIdentity returns the device and the inode of an open file.
func fileIdentity(f *os.File) (device, inode uint64, err error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return 0, 0, fmt.Errorf("look at %s: %w", f.Name(), err)
	}
	return uint64(s.Dev), s.Ino, nil //nolint:unconvert,gosec // Dev has another type elsewhere
}
