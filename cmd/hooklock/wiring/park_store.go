package wiring

import (
	"log/slog"
	"strings"

	"hooklock/config"
	"hooklock/proxy/parked"
)

// ParkOptions returns where the bytes of parked requests are stored, with the keys that
// Keeper.Reload takes over. It reads no certificates of S3, which ParkStore does.
func ParkOptions(c *config.Config) parked.Options {
	p := &c.ParkStore
	o := parked.Options{Inline: int(p.Inline), Dir: c.RequestsDir(), Keys: p.Keys.Reveal()}
	if p.S3.Endpoint != "" {
		o.S3 = &parked.S3Options{
			Endpoint: strings.TrimSuffix(p.S3.Endpoint, "/"), Bucket: p.S3.Bucket, Prefix: p.S3.Prefix,
			Region:    p.S3.Region,
			AccessKey: p.S3.AccessKey.Reveal(), SecretKey: p.S3.SecretKey.Reveal(), Timeout: p.S3.RequestTimeout,
		}
	}
	return o
}

// ParkStore returns the argument of parked.Open. log is as for ClientTLS.
func ParkStore(c *config.Config, log *slog.Logger) (parked.Options, error) {
	o := ParkOptions(c)
	if o.S3 == nil || !strings.HasPrefix(o.S3.Endpoint, "https:") {
		return o, nil
	}
	var err error
	o.S3.TLS, err = ClientTLS("park_store.s3.tls", &c.ParkStore.S3.TLS, log)
	return o, err
}
