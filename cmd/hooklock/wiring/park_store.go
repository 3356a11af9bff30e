package wiring

import (
	"log/slog"
	"strings"

	"hooklock/config"
	"hooklock/proxy/parked"
)

// ParkOptions say where the bytes of parked requests are kept, with the keys that Keeper.Reload takes over. They read no file: the certificates of S3 are
// ParkStore's.
func ParkOptions(c *config.Config) parked.Options {
	p := &c.ParkStore
	o := parked.Options{Inline: int(p.Inline), Dir: c.RequestsDir(), Keys: p.Keys.Reveal()}
	if p.S3.Endpoint != "" {
		o.S3 = &parked.S3Options{
			Endpoint: strings.TrimSuffix(p.S3.Endpoint, "/"), Bucket: p.S3.Bucket, Prefix: p.S3.Prefix, Region: p.S3.Region,
			AccessKey: p.S3.AccessKey.Reveal(), SecretKey: p.S3.SecretKey.Reveal(), Timeout: p.S3.RequestTimeout,
		}
	}
	return o
}

// ParkStore is what parked.Open takes. log is ClientTLS's.
func ParkStore(c *config.Config, log *slog.Logger) (parked.Options, error) {
	o := ParkOptions(c)
	if o.S3 == nil || !strings.HasPrefix(o.S3.Endpoint, "https:") {
		return o, nil
	}
	var err error
	o.S3.TLS, err = ClientTLS("park_store.s3.tls", &c.ParkStore.S3.TLS, log)
	return o, err
}

// checkKeys judges a key file.
func checkKeys(text string) error {
	_, err := parked.ParseKeys(text)
	return err
}
