package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

// failing is a listener whose next accepts fail.
type failing struct {
	net.Listener
	errs  []error
	calls atomic.Int32
}

func (f *failing) Accept() (net.Conn, error) {
	if n := int(f.calls.Add(1)) - 1; n < len(f.errs) {
		return nil, f.errs[n]
	}
	return f.Listener.Accept()
}

func accept4(errno syscall.Errno) error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", errno)}
}

func listening(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestAnAcceptThatLacksSomethingIsTriedAgain(t *testing.T) {
	inner := listening(t)
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EPERM,
		syscall.EPROTO, syscall.ENETDOWN, syscall.EHOSTUNREACH,
	} {
		l := NewListener(&failing{Listener: inner, errs: []error{accept4(errno), accept4(errno)}}, ListenerOptions{})
		_ = dial(t, inner.Addr().String())
		c, err := l.Accept()
		if err != nil {
			t.Errorf("%v: %v", errno, err)
			continue
		}
		_ = c.Close()
		if got := l.Counts(); got.Failed != 2 || !errors.Is(got.Failure, errno) {
			t.Errorf("%v: %+v", errno, got)
		}
		select {
		case <-l.Trouble():
		default:
			t.Errorf("%v: nobody is told", errno)
		}
	}
}

func TestAListenerThatIsNoneEnds(t *testing.T) {
	for _, err := range []error{net.ErrClosed, accept4(syscall.EBADF), accept4(syscall.EINVAL),
		accept4(syscall.ENOTSOCK), io.EOF} {
		l := NewListener(&failing{Listener: listening(t), errs: []error{err}}, ListenerOptions{})
		if _, got := l.Accept(); !errors.Is(got, err) {
			t.Errorf("%v for %v", got, err)
		}
	}
}

func TestCloseEndsTheWaitForAnAccept(t *testing.T) {
	errs := make([]error, 1000)
	for i := range errs {
		errs[i] = accept4(syscall.EMFILE)
	}
	l := NewListener(&failing{Listener: listening(t), errs: errs}, ListenerOptions{})
	ended := make(chan error)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	<-l.Trouble()
	_ = l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
