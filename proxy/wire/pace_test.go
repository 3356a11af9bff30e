package wire

import (
	"errors"
	"net"
	"testing"
	"time"
)

// timeless is a connection that takes no deadline.
type timeless struct{ net.Conn }

var errTimeless = errors.New("takes no deadline")

func (timeless) SetWriteDeadline(time.Time) error { return errTimeless }

func TestWithoutADeadlineNothingIsWrittenToASlowSender(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	_ = far.Close() // a write would say so
	c := &served{Conn: timeless{near},
		listener: &Listener{options: ListenerOptions{WritePace: Pace{Bytes: 1, Time: time.Second}}}}
	if n, err := c.Write([]byte("answer")); n != 0 || !errors.Is(err, errTimeless) {
		t.Errorf("%d, %v", n, err)
	}
}
