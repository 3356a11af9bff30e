package wiring

import (
	"log/slog"
	"strings"

	"hooklock/config"
	"hooklock/proxy/parked"
)

// ParkOptions say where the bytes of parked requests are kept: what parked.Open takes at the start, and Keeper.Reload afterwards. log is ClientTLS's.
func ParkOptions(c *config.Config, log *slog.Logger) (parked.Options, error) {
	p := &c.ParkStore
	o := parked.Options{Inline: int(p.Inline), Dir: c.RequestsDir(), Keys: p.Keys.Reveal()}
	if p.S3.Endpoint == "" {
		return o, nil
	}
	o.S3 = &parked.S3Options{
		Endpoint: strings.TrimSuffix(p.S3.Endpoint, "/"), Bucket: p.S3.Bucket, Prefix: p.S3.Prefix, Region: p.S3.Region,
		AccessKey: p.S3.AccessKey.Reveal(), SecretKey: p.S3.SecretKey.Reveal(), Timeout: p.S3.RequestTimeout,
	}
	if !strings.HasPrefix(p.S3.Endpoint, "https:") {
		return o, nil
	}
	t, err := ClientTLS("park_store.s3.tls", &p.S3.TLS, log)
	if err != nil {
		return o, err
	}
	o.S3.TLS = t
	return o, nil
}

// checkKeys judges a key file.
func checkKeys(text string) error {
	_, err := parked.ParseKeys(text)
	return err
}
