package naming

import (
	"regexp"
	"strings"
)

// hiddenText stands for a secret.
const hiddenText = "***"

// issued are the forms of secrets that senders and servers issue. The first group stays in sight:
// it says which kind it is, and nothing of the secret.
var issued = regexp.MustCompile(strings.Join([]string{
	`\b(whsec_|whsk_|(?:sk|rk)_(?:live|test)_|rzp_live_|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|xapp-|shp[a-z]{2}_|npm_|dop_v1_|hvs\.|lin_wh_|pdl_[a-z]+_|AKIA|ASIA|SG\.)[A-Za-z0-9_+/=.-]{8,}`,
	`\b(eyJ)[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`,         // a JSON Web Token
	`(?i:(\b(?:bearer|basic) ))[A-Za-z._~+/=-]*[0-9][A-Za-z0-9._~+/=-]*`, // credentials of a header
	`(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?s:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)`,
	`([a-z]://)[^/?#\s"]*@`, // who calls, in a URL
}, "|"))

// HideSecrets returns text without the secrets in it that can be told by their form, such as
// whsec_… of Stripe or the user and password of a URL. It is for messages that quote what a person
// wrote: many write the secret where its file is asked for.
func HideSecrets(text string) string {
	return issued.ReplaceAllStringFunc(text, func(secret string) string {
		groups := issued.FindStringSubmatch(secret)
		kind := strings.Join(groups[1:], "")
		if strings.HasSuffix(kind, "://") {
			return kind + "…@"
		}
		return kind + hiddenText
	})
}
