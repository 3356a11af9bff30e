package predecessor

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// NoSlot is of a proof that was not written.
const NoSlot = -1

const (
	slotSize  = 1 << 10
	slotCount = 512
	slotHead  = crc32.Size + 2 // a CRC-32C of what follows, and the length of the proof behind it
	slowDisk  = 50 * time.Millisecond
)

// slots are the places for proofs in the file of this process, behind its head. A slot that was
// given back keeps its proof until it is used again: etcd has that by then, so it proves nothing
// new. It is safe for concurrent use.
type slots struct {
	file  atomic.Pointer[os.File]
	since atomic.Int64 // when the oldest write began that has not come back, in ns since 1970; 0 = there is none

	mu   sync.Mutex
	free []int
	next int // the first that was never used
}

func (s *slots) takeSlot() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	if s.next == slotCount {
		return NoSlot
	}
	s.next++
	return s.next - 1
}

func (s *slots) giveBack(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, slot)
}

// inUse reports whether a slot has a proof that etcd may not have.
func (s *slots) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.free) < s.next
}

// Write writes a proof into the file of this process, where it survives that: it is in the kernel's
// page cache, and not synced. It returns the slot for Free, or NoSlot if there is no file, no free
// slot, or no room in one, or if the disk is slow. What a death leaves unknown then is unknown.
func (p *Predecessors) Write(proof *protocol.Proof) int {
	if p == nil {
		return NoSlot
	}
	s := &p.slots
	file, now := s.file.Load(), p.options.Clock.Now()
	// a disk that hangs holds up the ends that meet it first, and no later one
	if since := s.since.Load(); file == nil || since != 0 && now.UnixNano()-since > int64(slowDisk) {
		return NoSlot
	}
	page := slotOf(proof)
	if page == nil {
		return NoSlot
	}
	slot := s.takeSlot()
	if slot == NoSlot {
		return NoSlot
	}
	s.since.CompareAndSwap(0, now.UnixNano())
	_, err := file.WriteAt(page, offsetOf(slot))
	s.since.Store(0)
	if err != nil {
		s.giveBack(slot)
		return NoSlot
	}
	return slot
}

// Free is called when etcd has what the proof in a slot says, or never will.
func (p *Predecessors) Free(slot int) {
	if p != nil && slot != NoSlot {
		p.slots.giveBack(slot)
	}
}

func offsetOf(slot int) int64 { return headSize + int64(slot)*slotSize }

// slotOf returns a slot with the proof, or nil if there is no room for it.
func slotOf(proof *protocol.Proof) []byte {
	value, err := protocol.EncodeProof(proof)
	if err == nil && len(value) > slotSize-slotHead && proof.End.Error != nil {
		short := *proof
		short.End.Error = &idem.Failure{Code: proof.End.Error.Code}
		value, err = protocol.EncodeProof(&short)
	}
	if err != nil || len(value) > slotSize-slotHead {
		return nil
	}
	page := make([]byte, slotHead, slotHead+len(value))
	binary.BigEndian.PutUint16(page[crc32.Size:], uint16(len(value)))
	page = append(page, value...)
	binary.BigEndian.PutUint32(page, slotSum(page))
	return page
}

// proofIn reads what slotOf has made; nil: it is something else, or was cut short.
func proofIn(page []byte) *protocol.Proof {
	end := slotHead + int(binary.BigEndian.Uint16(page[crc32.Size:]))
	if end == slotHead || end > len(page) || binary.BigEndian.Uint32(page) != slotSum(page[:end]) {
		return nil
	}
	proof, err := protocol.DecodeProof(page[slotHead:end])
	if err != nil {
		return nil
	}
	return proof
}

// slotSum is that of a slot whose proof ends where page does.
func slotSum(page []byte) uint32 {
	return crc32.Checksum(page[crc32.Size:], crc32.MakeTable(crc32.Castagnoli)) // made once
}

// readProofs returns what the file of a dead process proves.
func (o *orphan) readProofs() (all []*protocol.Proof, err error) {
	pages := make([]byte, slotCount*slotSize)
	n, err := o.file.ReadAt(pages, headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for pages = pages[:n]; len(pages) >= slotHead; pages = pages[min(slotSize, len(pages)):] {
		if proof := proofIn(pages[:min(slotSize, len(pages))]); proof != nil {
			all = append(all, proof)
		}
	}
	return all, nil
}
