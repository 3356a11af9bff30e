package wire

import "golang.org/x/sys/unix"

// halfClosed is the event of poll(2) that says that the peer's FIN has come.
const halfClosed = unix.POLLRDHUP

// tcpInfo asks the kernel about a TCP connection: tcpi_bytes_acked, the bytes that the peer's
// kernel has acknowledged, and the state. False where fd is no TCP connection.
func tcpInfo(fd int) (acked uint64, state uint8, ok bool) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, 0, false
	}
	return info.Bytes_acked, info.State, true
}
