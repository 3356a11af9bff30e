// Package front starts nginx, HAProxy, Apache, Caddy and Traefik with the files in deploy/ and the
// lines of their pages in docs/ingress, in front of a Hooklock process or two, and looks at what
// goes through: both ways, byte for byte, and how often. It also has fronts without a file,
// Varnish, Squid and lighttpd among them, and careless settings, of which doctor is to say what
// they do.
package front
