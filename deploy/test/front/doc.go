// Package front starts nginx, HAProxy and Caddy with the files in deploy/, in front of a Hooklock process, and looks at what goes through:
// both ways, byte for byte, and how often.
package front
