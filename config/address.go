package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// checkAddress refuses what net.Listen would refuse, and says how an address is written.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.ContainsAny(host, " /%") {
		return fmt.Errorf("%q is not an address; write host:port, e.g. 127.0.0.1:8080", address)
	}
	return checkPort(port, 0)
}

// checkDoor accepts what checkAddress does, and unix:///path.
func checkDoor(address string) error {
	path, socket := SocketPath(address)
	switch {
	case !socket:
		return checkAddress(address)
	case !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0):
		return fmt.Errorf("%q: a socket is named by its whole path, e.g. unix:///run/hooklock/hooklock.sock", address)
	case len(path) > longestSocket:
		return fmt.Errorf("%q: the path of a socket is at most %d bytes long", address, longestSocket)
	}
	return nil
}

// longestSocket is the longest path that fits into sun_path of all systems that Hooklock runs on;
// Linux has room for four bytes more.
const longestSocket = 103

// SocketPath returns the path in unix:///path; false if the address is not a socket's.
func SocketPath(address string) (path string, is bool) { return strings.CutPrefix(address, "unix://") }

func checkPort(port string, least int64) error {
	n, err := parseDigits(port)
	if err != nil || n < least || n > 65535 {
		return fmt.Errorf("%q is not a port; it is a number from %d to 65535", port, least)
	}
	return nil
}

// isLoopback reports whether only this machine reaches the address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// sameAddress reports whether two listeners would want the same port. Port 0 is always another one.
func sameAddress(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return anyHost(hostA) || anyHost(hostB) || plainHost(hostA) == plainHost(hostB)
}

func anyHost(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

func plainHost(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return strings.ToLower(host)
}

// checkUpstreamURL accepts http://host, https://host and unix:///path.
func checkUpstreamURL(text string) error {
	if hasUser(text) {
		return errUser
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return fmt.Errorf("%q is not a URL; write http://host:port, https://host:port or unix:///path",
			beforeQuery(text))
	}
	switch u.Scheme {
	case "http", "https":
		return checkServerURL(u)
	case "unix":
		if u.Host != "" || len(u.Path) < 2 || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("%q: a socket is named by its whole path, e.g. unix:///run/app.sock", text)
		}
		return nil
	}
	return fmt.Errorf("%q: the scheme is http, https or unix", beforeQuery(text))
}

var errUser = errors.New("a user name or password in a URL ends up in logs; remove it")

// hasUser reports whether a URL, also one that cannot be parsed, has a user name in it. Then it is
// not shown.
func hasUser(text string) bool {
	return strings.Contains(text, "@") && !strings.HasPrefix(text, "unix:")
}

// beforeQuery returns the part of a URL that may be shown: queries may hold keys.
func beforeQuery(text string) string {
	before, _, _ := strings.Cut(text, "?")
	return before
}

// checkServerURL refuses the parts that would be ignored: a path, a query, a password.
func checkServerURL(u *url.URL) error {
	switch {
	case u.User != nil:
		return errUser
	case u.Hostname() == "":
		return errors.New("the URL has no host")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("the URL must end after the port: no path, no query")
	case u.Port() != "":
		return checkPort(u.Port(), 1)
	case strings.HasSuffix(u.Host, ":"):
		return errors.New("the port after : is missing")
	}
	return nil
}

// upstreamAddress returns the host:port that calls to the upstream go to, "" for a socket.
func upstreamAddress(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return WithPort(u)
}

// WithPort returns the host and port of a URL of HTTP, with the default port of its scheme if it
// names none.
func WithPort(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}

// callsItself reports whether a call of the upstream comes in at the own listener. A listener on
// every address has the port on this machine.
func callsItself(own, upstream string) bool {
	if path, socket := SocketPath(own); socket {
		other, is := SocketPath(upstream)
		return is && path == other
	}
	address := upstreamAddress(upstream)
	if !sameAddress(own, address) {
		return false
	}
	host, _, _ := net.SplitHostPort(own) // sameAddress has read both
	called, _, _ := net.SplitHostPort(address)
	if anyHost(host) {
		return anyHost(called) || isLoopback(address)
	}
	return isLoopback(own) || plainHost(host) == plainHost(called)
}

// checkEndpoint accepts http://host:2379, https://host:2379 and host:2379. The scheme is empty for
// the last.
func checkEndpoint(text string) (scheme string, err error) {
	if hasUser(text) {
		return "", errUser
	}
	if !strings.Contains(text, "://") {
		host, port, err := net.SplitHostPort(text)
		if err != nil || host == "" || strings.ContainsAny(host, " /@%") {
			return "", fmt.Errorf("%q is not an endpoint; write http://host:2379, https://host:2379 or host:2379", text)
		}
		return "", checkPort(port, 1)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not an endpoint; write http://host:2379, https://host:2379 or host:2379",
			beforeQuery(text))
	}
	return u.Scheme, checkServerURL(u)
}

// checkHost accepts a host name or address without port, as in a Host header.
func checkHost(host string) error {
	if ip, ok := strings.CutPrefix(host, "["); ok {
		if _, err := netip.ParseAddr(strings.TrimSuffix(ip, "]")); err == nil && strings.HasSuffix(ip, "]") {
			return nil
		}
	}
	switch {
	case host == "":
		return errors.New("is empty")
	case strings.Contains(host, "*"):
		return fmt.Errorf("%q: wildcards are not supported; write each name", host)
	case strings.ContainsAny(host, ":/"):
		return fmt.Errorf("%q: write the name alone, without scheme and port", host)
	}
	if !madeOf(host, alphanumeric+"-._") {
		return fmt.Errorf("%q is not a host name", host)
	}
	return nil
}

const (
	lowerCase    = "abcdefghijklmnopqrstuvwxyz"
	upperCase    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits       = "0123456789"
	alphanumeric = lowerCase + upperCase + digits
)

// madeOf reports whether text has no other characters than these.
func madeOf(text, characters string) bool { return strings.Trim(text, characters) == "" }
