package sender

import "testing"

func TestHubSpotSignsItsURLInEitherSpelling(t *testing.T) {
	c, secret := credentials(t, "hubspot")
	v := mustNew(t, c)
	const base = "https://hooks.example.com"
	for arrives, signed := range map[string][]string{
		"/h?email=foo%40bar.com":                     {"/h?email=foo%40bar.com", "/h?email=foo@bar.com"},
		"/h?x=%3A%2f%3F%40%21%24%27%28%29%2A%2C%3B.": {"/h?x=:/?@!$'()*,;."},
		"/h?x=%20%253A%26%3D%2B%23%":                 {"/h?x=%20%253A%26%3D%2B%23%"},
		"/h?x=%4":                                    {"/h?x=%4"},
		"/h?x=%25%3A":                                {"/h?x=%25:"},
		"/h?email=foo@bar.com":                       {"/h?email=foo@bar.com"},
	} {
		for _, url := range signed {
			d := mustSample(t, "hubspot", secret)
			s := &sample{secret: secret, now: testNow()}
			d = with(d, hubspotV3, s.hmac256(inBase64, "POST", base+url, string(d.Body), s.unixMillis()))
			d.Target = []byte(arrives)
			if err := v.Verify(d, testNow()); err != nil {
				t.Errorf("%s, signed as %s: %v", arrives, url, err)
			}
			for _, other := range []string{"/h?email=foo%40bar.co", "/h?email=foo%26bar.com"} {
				d.Target = []byte(other)
				if v.Verify(d, testNow()) == nil {
					t.Errorf("%s is taken for %s", other, url)
				}
			}
		}
	}
}

// FuzzHubSpotURL checks that decoding removes the known encodings and changes nothing else.
func FuzzHubSpotURL(f *testing.F) {
	f.Add([]byte("https://a/?x=%3A%2f%"))
	f.Fuzz(func(t *testing.T, url []byte) {
		decoded := hubspotDecoded(url)
		if decoded != nil && len(decoded) >= len(url) {
			t.Fatalf("%q of %q", decoded, url)
		}
	})
}
