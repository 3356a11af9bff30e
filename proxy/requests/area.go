package requests

import (
	"context"
	"encoding/binary"
	"hash/crc32"

	"hooklock/idem"
)

// area is the part of a store in which an Archive keeps requests, each in a frame.
type area interface {
	// writeFrames puts the frames of a batch onto a shelf, and makes the shelf if need be. They
	// need not survive a crash of the machine. It sets err of those that are not there afterwards.
	writeFrames(ctx context.Context, s shelf, batch []*unwritten)
	// readFrame returns what encodeFrame was given.
	readFrame(ctx context.Context, s shelf, execution idem.ExecutionID) ([]byte, error) // ErrNotKept: there is none
	hasFrame(ctx context.Context, s shelf, execution idem.ExecutionID) error            // ErrNotKept: there is none
	eraseFrame(ctx context.Context, s shelf, execution idem.ExecutionID) error          // nil if there is none
	removeAll(ctx context.Context, s shelf) error                                       // nil if there is none
	// noteCount makes an empty file in the folder of counts; forgetCount deletes it, and returns
	// nil if there is none.
	noteCount(ctx context.Context, name string) error
	forgetCount(ctx context.Context, name string) error
	// listNames returns the names of what is in a folder, files and folders; none if there is no
	// such folder.
	listNames(ctx context.Context, folder string) ([]string, error)
}

// A frame is a request of the archive: frameMagic, the size of what follows the sum, a CRC-32C of
// that, the length of the execution's ID, the ID, and what Keys.Seal wrote. The sum tells a frame
// that a crash of the machine cut short. Of an erased one all is zero but magic and size.
const frameMagic = "HLK\x01"

const (
	frameSum  = len(frameMagic) + 4   // where the sum is
	frameHead = frameSum + crc32.Size // what is before the length of the ID
	maxFrame  = 1 + 255 + maxKept     // behind that
)

// encodeFrame returns the frame of an execution.
func encodeFrame(execution idem.ExecutionID, sealed []byte) []byte {
	size := 1 + len(execution) + len(sealed)
	b := make([]byte, 0, frameHead+size)
	b = append(b, frameMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = append(b, 0, 0, 0, 0, byte(len(execution)))
	b = append(b, execution...)
	b = append(b, sealed...)
	binary.BigEndian.PutUint32(b[frameSum:], sumOf(b[frameHead:]))
	return b
}

// frameSize returns how many bytes follow a head; false if it is none.
func frameSize(head []byte) (int, bool) {
	size := binary.BigEndian.Uint32(head[len(frameMagic):])
	return int(size), string(head[:len(frameMagic)]) == frameMagic && size > 0 && size <= uint32(maxFrame)
}

// decodeFrame returns what encodeFrame was given for an execution; false if b is no such frame, was
// erased, or was cut short.
func decodeFrame(execution idem.ExecutionID, b []byte) (sealed []byte, ok bool) {
	if len(b) <= frameHead {
		return nil, false
	}
	size, ok := frameSize(b)
	body := b[frameHead:]
	if !ok || size != len(body) || sumOf(body) != binary.BigEndian.Uint32(b[frameSum:]) {
		return nil, false
	}
	id, sealed, ok := cutID(body)
	return sealed, ok && id == execution
}

// cutID returns the execution of what follows a head, and the rest; false if it was erased.
func cutID(body []byte) (execution idem.ExecutionID, rest []byte, ok bool) {
	n := 1 + int(body[0])
	if n == 1 || n > len(body) {
		return "", nil, false
	}
	return idem.ExecutionID(body[1:n]), body[n:], true
}

func sumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) } // made once
