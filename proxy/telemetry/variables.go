package telemetry

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// variable is one that the SDK reads by itself. It would log values that it cannot use, secrets
// included, and some values end the process; so each is checked first, and the SDK gets only what
// it can use.
type variable struct {
	name string
	// mend returns the usable part of a value, "" for the default, and the problem, without quoting
	// the value.
	mend func(value string) (usable, problem string)
}

// variablesOf returns those that matter for these wishes. What some of them may be depends on
// others.
func variablesOf(w *wishes, env func(string) string) []variable {
	all := []variable{
		{"OTEL_RESOURCE_ATTRIBUTES", mendAttributes},
		choiceVariable("OTEL_METRICS_EXEMPLAR_FILTER", "trace_based", "always_on", "always_off", "trace_based"),
	}
	if w.traces != otlpNone {
		all = append(all,
			numberVariable("OTEL_BSP_MAX_QUEUE_SIZE", 1, mostSpans, "2048"),
			numberVariable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, mostSpans, "512"),
			numberVariable("OTEL_BSP_SCHEDULE_DELAY", 1, mostMillis, "5000"),
			numberVariable("OTEL_BSP_EXPORT_TIMEOUT", 0, mostMillis, "30000"),
			numberVariable("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", -1, math.MaxInt32, "no limit"),
			numberVariable("OTEL_ATTRIBUTE_COUNT_LIMIT", -1, math.MaxInt32, "128"),
			numberVariable("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", -1, math.MaxInt32, "no limit"),
			numberVariable("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", -1, math.MaxInt32, "128"),
			numberVariable("OTEL_SPAN_EVENT_COUNT_LIMIT", -1, math.MaxInt32, "128"),
			numberVariable("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", -1, math.MaxInt32, "128"),
			numberVariable("OTEL_SPAN_LINK_COUNT_LIMIT", -1, math.MaxInt32, "128"),
			numberVariable("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", -1, math.MaxInt32, "128"),
			variable{"OTEL_TRACES_SAMPLER", mendSampler}, variable{"OTEL_TRACES_SAMPLER_ARG", mendRatio},
		)
		all = append(all, exporterVariables("TRACES_", env, "TRACES_")...)
	}
	if w.metrics != otlpNone {
		all = append(all, numberVariable("OTEL_METRIC_EXPORT_INTERVAL", 1, mostMillis, "60000"),
			numberVariable("OTEL_METRIC_EXPORT_TIMEOUT", 1, mostMillis, "30000"),
			choiceVariable("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative", "cumulative", "delta",
				"lowmemory"),
			choiceVariable("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "explicit_bucket_histogram",
				"explicit_bucket_histogram", "base2_exponential_bucket_histogram"))
		all = append(all, exporterVariables("METRICS_", env, "METRICS_")...)
	}
	switch {
	case w.traces != otlpNone && w.metrics != otlpNone:
		all = append(all, exporterVariables("", env, "TRACES_", "METRICS_")...)
	case w.traces != otlpNone:
		all = append(all, exporterVariables("", env, "TRACES_")...)
	case w.metrics != otlpNone:
		all = append(all, exporterVariables("", env, "METRICS_")...)
	}
	return all
}

const (
	mostSpans  = 1 << 20       // the SDK takes the memory for so many at once
	mostMillis = math.MaxInt32 // almost 25 days
)

const otlpPrefix = "OTEL_EXPORTER_OTLP_"

// exporterVariables returns those of one signal, or, without one, of both. signals are those that
// are sent with them.
func exporterVariables(signal string, env func(string) string, signals ...string) []variable {
	prefix := otlpPrefix + signal
	return []variable{
		{prefix + "COMPRESSION", func(value string) (string, string) {
			if value != "gzip" && value != "none" { // exactly: the SDK sends anything else uncompressed
				return "", "choose from gzip, none; taken for none"
			}
			return value, ""
		}},
		{prefix + "INSECURE", func(value string) (string, string) { return mendInsecure(value, env, signals) }},
		{prefix + "ENDPOINT", mendEndpoint}, {prefix + "HEADERS", mendHeaders},
		numberVariable(prefix+"TIMEOUT", 0, mostMillis, "10000"),
		{prefix + "CERTIFICATE", mendFile}, {prefix + "CLIENT_CERTIFICATE", mendFile},
		{prefix + "CLIENT_KEY", mendFile},
	}
}

// mendVariables checks the variables, replaces values that the SDK could not use by what is left of
// them, and returns the problems.
func mendVariables(w *wishes, env func(string) string, set func(name, value string) error) (problems []string) {
	for _, v := range variablesOf(w, env) {
		value := env(v.name)
		if strings.TrimSpace(value) == "" {
			continue
		}
		usable, problem := v.mend(value)
		if problem == "" {
			continue
		}
		problems = append(problems, v.name+": "+problem)
		if err := set(v.name, usable); err != nil {
			problems = append(problems, v.name+": cannot be set aside")
		}
	}
	return problems
}

// numberVariable returns a variable with a whole number.
func numberVariable(name string, least, most int64, standard string) variable {
	return variable{name, func(value string) (string, string) {
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return "", fmt.Sprintf("no whole number; write one from %d to %d; taken for %s", least, most, standard)
		case n < least || n > most:
			return "", fmt.Sprintf("%d is out of bounds; choose from %d to %d; taken for %s", n, least, most, standard)
		}
		return value, ""
	}}
}

// choiceVariable returns a variable with one of these words, in any case.
func choiceVariable(name, standard string, words ...string) variable {
	return variable{name, func(value string) (string, string) {
		if !slices.Contains(words, strings.ToLower(strings.TrimSpace(value))) {
			return "", "choose from " + strings.Join(words, ", ") + "; taken for " + standard
		}
		return value, ""
	}}
}

// mendInsecure checks whether an endpoint without a scheme is sent to unencrypted. For others the
// scheme says so, but the SDK gives this variable precedence over it (opentelemetry-go 1.47).
func mendInsecure(value string, env func(string) string, signals []string) (usable, problem string) {
	scheme := map[string]string{"true": "http", "false": "https"}[strings.ToLower(strings.TrimSpace(value))]
	if scheme == "" {
		return "", "choose from true, false; the endpoint decides"
	}
	for _, signal := range signals {
		endpoint := cmp.Or(env(otlpPrefix+signal+"ENDPOINT"), env(otlpPrefix+"ENDPOINT"))
		u, err := url.Parse(strings.TrimSpace(endpoint))
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme != scheme {
			return "", "it contradicts an endpoint that begins with " + u.Scheme + "://; the endpoint decides"
		}
	}
	return value, ""
}

// samplers are those that the SDK knows.
var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
	"parentbased_traceidratio"}

func mendSampler(value string) (string, string) {
	if !slices.Contains(samplers, strings.ToLower(strings.TrimSpace(value))) {
		return "", "choose from " + strings.Join(samplers, ", ") + "; taken for parentbased_always_on"
	}
	return value, ""
}

// mendRatio checks the argument of a sampler. Samplers that are no ratio take none.
func mendRatio(value string) (string, string) {
	ratio, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return "", "no share of the deliveries; write a number from 0 to 1, such as 0.1; taken for 1"
	}
	return value, ""
}

func mendEndpoint(value string) (string, string) {
	u, err := url.Parse(strings.TrimSpace(value))
	switch {
	case err != nil:
		return "", "not a URL; write e.g. http://collector:4318; taken for the default, on localhost"
	case u.User != nil:
		u.User = nil
		return u.String(), "a user name or password in it is not sent; use " +
			"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Basic%20…"
	}
	return value, ""
}

// mendFile checks the name of a file, which the SDK reads. A key itself in place of its path would
// be in the error.
func mendFile(value string) (string, string) {
	f, err := os.Open(strings.TrimSpace(value))
	if err != nil {
		return "", "no file that can be read; write its path; none is used"
	}
	_ = f.Close()
	return value, ""
}

func mendHeaders(value string) (string, string) {
	usable, bad := goodPairs(value, func(name, value string) bool {
		return httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)
	})
	if bad > 0 {
		return usable, fmt.Sprintf("%d of its headers cannot be sent, and are left out; write name=value,name=value "+
			"with percent-encoded values", bad)
	}
	return value, ""
}

func mendAttributes(value string) (string, string) {
	usable, bad := goodPairs(value, func(name, _ string) bool { return name != "" })
	if bad > 0 {
		return usable, fmt.Sprintf("%d of its attributes cannot be read, and are left out; write "+
			"name=value,name=value with percent-encoded values", bad)
	}
	return value, ""
}

// goodPairs returns the valid pairs of a list of name=value with percent-encoded values, as they
// were written, and how many are not.
func goodPairs(list string, good func(name, value string) bool) (usable string, bad int) {
	var kept []string
	for pair := range strings.SplitSeq(list, ",") {
		name, encoded, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(encoded)
		if !found || err != nil || !good(strings.TrimSpace(name), strings.TrimSpace(value)) {
			bad++
			continue
		}
		kept = append(kept, pair)
	}
	return strings.Join(kept, ","), bad
}

// secretsOf returns the values of headers that are sent with OTLP, as they might appear in an
// error: whole, and without a word such as Basic.
func secretsOf(env func(string) string) (secrets []string) {
	for _, signal := range []string{"", "TRACES_", "METRICS_"} {
		for pair := range strings.SplitSeq(env("OTEL_EXPORTER_OTLP_"+signal+"HEADERS"), ",") {
			_, encoded, _ := strings.Cut(pair, "=")
			value, err := url.PathUnescape(encoded)
			if err != nil {
				continue
			}
			_, words, _ := strings.Cut(strings.TrimSpace(value), " ")
			for _, text := range []string{value, encoded, words} {
				if text = strings.TrimSpace(text); len(text) >= shortest {
					secrets = append(secrets, text)
				}
			}
		}
	}
	return secrets
}

// shortest is the minimum length of a secret; shorter texts occur in any text.
const shortest = 4
