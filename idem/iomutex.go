package idem

// ioMutex is a mutex that may be held during a request to the ledger. It is a channel, because a goroutine that waits for it waits for the network,
// and a test in virtual time has to see that. Make one with newIOMutex.
type ioMutex chan struct{}

func newIOMutex() ioMutex { return make(ioMutex, 1) }

// Lock implements sync.Locker.
func (m ioMutex) Lock() { m <- struct{}{} }

// Unlock implements sync.Locker.
func (m ioMutex) Unlock() { <-m }
