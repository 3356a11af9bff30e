package telemetry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// The value that must not be in any log.
const planted = "planted-secret"

// unusable are variables that the SDK cannot use, and what is said of them.
var unusable = []struct{ name, value, says string }{
	{"OTEL_BSP_MAX_QUEUE_SIZE", "-1", "-1 is out of bounds; choose from 1 to 1048576; taken for 2048"},
	{"OTEL_BSP_MAX_QUEUE_SIZE", "9223372036854775807", "out of bounds"},
	{"OTEL_BSP_MAX_QUEUE_SIZE", "99999999999999999999", "no whole number"},
	{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "-1", "taken for 512"},
	{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0", "taken for 512"},
	{"OTEL_BSP_SCHEDULE_DELAY", "0", "taken for 5000"},
	{"OTEL_BSP_SCHEDULE_DELAY", "5s", "no whole number"},
	{"OTEL_BSP_EXPORT_TIMEOUT", "-1", "taken for 30000"},
	{"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", planted, "taken for 128"},
	{"OTEL_SPAN_EVENT_COUNT_LIMIT", "1.5", "no whole number"},
	{"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "-7", "taken for no limit"},
	{"OTEL_METRIC_EXPORT_INTERVAL", "-1", "taken for 60000"},
	{"OTEL_METRIC_EXPORT_TIMEOUT", planted, "taken for 30000"},
	{"OTEL_EXPORTER_OTLP_TIMEOUT", "-1", "taken for 10000"},
	{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", planted, "taken for 10000"},
	{"OTEL_EXPORTER_OTLP_HEADERS", "api-key:" + planted, "1 of its headers cannot be sent"},
	{"OTEL_EXPORTER_OTLP_HEADERS", "a=b,Authorization=%zz" + planted, "1 of its headers cannot be sent"},
	{"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "Authorization=Basic%20" + planted + "%01",
		"1 of its headers cannot be sent"},
	{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "api key " + planted + "=x", "1 of its headers cannot be sent"},
	{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:" + planted + "@h:port", "not a URL"},
	{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://u:" + planted + "%zz@h", "not a URL"},
	{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://u:" + planted + "@127.0.0.1:1",
		"a user name or password in it is not sent"},
	{"OTEL_EXPORTER_OTLP_CLIENT_KEY", "-----BEGIN PRIVATE KEY-----" + planted, "no file that can be read"},
	{"OTEL_EXPORTER_OTLP_CERTIFICATE", planted, "no file that can be read"},
	{"OTEL_RESOURCE_ATTRIBUTES", "a=b," + planted, "1 of its attributes cannot be read"},
	{"OTEL_RESOURCE_ATTRIBUTES", "a=%zz" + planted, "1 of its attributes cannot be read"},
	{"OTEL_TRACES_SAMPLER", planted, "choose from always_on"},
	{"OTEL_TRACES_SAMPLER_ARG", planted, "no share of the deliveries"},
	{"OTEL_TRACES_SAMPLER_ARG", "1.5", "no share of the deliveries"},
	{"OTEL_TRACES_SAMPLER_ARG", "NaN", "no share of the deliveries"},
	{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "choose from gzip, none; taken for none"},
	{"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", planted, "choose from gzip, none; taken for none"},
	{"OTEL_EXPORTER_OTLP_INSECURE", "maybe", "choose from true, false; the endpoint decides"},
	{"OTEL_EXPORTER_OTLP_METRICS_INSECURE", planted, "choose from true, false; the endpoint decides"},
	{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", planted,
		"choose from cumulative, delta, lowmemory; taken for cumulative"},
	{"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", planted, "taken for explicit_bucket_histogram"},
	{"OTEL_METRICS_EXEMPLAR_FILTER", planted, "choose from always_on, always_off, trace_based; taken for trace_based"},
}

// TestTheSchemeOfAnEndpointDecidesWhetherItIsEncrypted: the SDK would send to https:// what http://
// asks for.
func TestTheSchemeOfAnEndpointDecidesWhetherItIsEncrypted(t *testing.T) {
	const both, traces = "OTEL_EXPORTER_OTLP_INSECURE", "OTEL_EXPORTER_OTLP_TRACES_INSECURE"
	for _, c := range []struct {
		name, value, endpoint, tracesEndpoint string
		kept                                  bool
	}{
		{both, "false", "http://c:4318", "", false},
		{both, "true", "https://c:4318", "", false},
		{both, "false", "https://c:4318", "", true},
		{both, "TRUE", "http://c:4318", "", true},
		{both, "true", "c:4317", "", true},
		{both, "false", "", "", true},
		{both, "true", "http://c:4318", "https://c:4318", false},
		{traces, "false", "https://c:4318", "http://c:4318", false},
		{traces, "false", "http://c:4318", "https://c:4318", true},
		{traces, "false", "http://c:4318", "", false},
	} {
		env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.endpoint,
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.tracesEndpoint, c.name: c.value}
		problems := mendVariables(&wishes{traces: otlpGRPC, metrics: otlpGRPC}, func(n string) string { return env[n] },
			func(n, v string) error { env[n] = v; return nil })
		if kept := env[c.name] == c.value; kept != c.kept || kept != (len(problems) == 0) {
			t.Errorf("%+v: %q: %q", c, env[c.name], problems)
		}
	}
}

// warned fails unless the log has n warnings, one of which says this of name, and no value; and
// nothing more of it from the SDK.
func warned(t *testing.T, r *rig, n int, name, says string) {
	t.Helper()
	said := r.log.String()
	if strings.Count(said, `"msg":"telemetry.config"`) != n || !strings.Contains(said, `"problem":"`+name+": ") ||
		!strings.Contains(said, says) {
		t.Errorf("%s", said)
	}
	for _, never := range []string{planted, "parsing sampler", "invalid trace ID ratio", "unsupported sampler"} {
		if strings.Contains(said, never) {
			t.Errorf("%s is in %s", never, said)
		}
	}
}

func TestAVariableThatCannotBeUsedIsAWarningAndTheDefault(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	env := []string{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_METRICS_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT",
		collector.URL,
		"OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", os.DevNull}
	for _, c := range unusable {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			warned(t, open(t, append(env, c.name, c.value)...), 1, c.name, c.says)
		})
	}
}

// The libraries for gRPC read them once more.
func TestVariablesThatCannotBeUsedAreNotForGRPCEither(t *testing.T) {
	env := []string{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_METRICS_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL",
		"grpc"}
	names := map[string]bool{}
	for _, c := range unusable {
		env = append(env, c.name, c.value)
		names[c.name] = true
	}
	r := open(t, env...)
	for _, c := range unusable {
		warned(t, r, len(names), c.name, "")
	}
}

func TestWhatIsGoodOfAListIsStillUsed(t *testing.T) {
	open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS", "a=b, c=d%20e,bad,f=%01",
		"OTEL_RESOURCE_ATTRIBUTES", "x=1,=2,y")
	if h, a := os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), os.Getenv("OTEL_RESOURCE_ATTRIBUTES"); h != "a=b, c=d%20e" ||
		a != "x=1" {
		t.Errorf("%q %q", h, a)
	}
}

func TestVariablesThatCanBeUsedAreLeftAlone(t *testing.T) {
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS",
		"Authorization=Basic%20abc%3D%3D, X-Scope-OrgID=1",
		"OTEL_BSP_MAX_QUEUE_SIZE", "4096", "OTEL_TRACES_SAMPLER", "ParentBased_TraceIDRatio", "OTEL_TRACES_SAMPLER_ARG",
		"0.25",
		"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "-1", "OTEL_RESOURCE_ATTRIBUTES",
		"deployment.environment.name=prod,a=b%2Cc"}
	r := open(t, env...)
	if strings.Contains(r.log.String(), "telemetry.config") {
		t.Error(r.log.String())
	}
	for i := 0; i < len(env); i += 2 {
		if os.Getenv(env[i]) != env[i+1] {
			t.Errorf("%s is %q now", env[i], os.Getenv(env[i]))
		}
	}
}

func TestAnErrorOfOpenTelemetryIsShownWithoutWhatItQuotesOfSecrets(t *testing.T) {
	c := newScrubber(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "api-key=" + planted + "1,Authorization=Basic%20" +
			planted + "%3D", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "id=1"}[name]
	})
	for text, want := range map[string]string{
		`Post "https://u:p4ss@collector:4318/v1/` + planted +
			`?key=k": dial tcp 127.0.0.1:4318: connect: connection refused`: `Post "https://collector:4318": dial tcp 127.0.0.1:4318: connect: connection refused`,
		"failed to send to http://c:1/v1/traces: 401 (body: no such key: " + planted +
			"1)": "failed to send to http://c:1 401 (body: no such key: ***)",
		"Authorization was Basic " + planted +
			"=": "Authorization was ***",
		"Authorization was Basic%20" + planted +
			"%3D": "Authorization was ***",
		"token " + planted +
			"= is unknown": "token *** is unknown",
		"parse http://u:" + planted +
			"%zz@h: bad": "parse (a URL) bad",
		`parse "http://u:p4 ss@h": invalid`: `parse (a URL): invalid`,
		"1 span of 1":                       "1 span of 1",
	} {
		if got := c.scrubText(text); got != want {
			t.Errorf("%s\n%s", got, want)
		}
	}
	inner := errors.New(planted + "1")
	if err := c.scrubError(inner); !errors.Is(err, inner) || err.Error() != "***" || c.scrubError(nil) != nil {
		t.Error(err)
	}
}

func FuzzMend(f *testing.F) {
	f.Add("-1")
	f.Add("api-key:secret")
	f.Add("a=b,c")
	f.Add("http://u:p@h:port")
	f.Add("0.5")
	f.Fuzz(func(t *testing.T, value string) {
		w := &wishes{traces: otlpHTTP, metrics: otlpGRPC}
		for _, v := range variablesOf(w, func(string) string { return value }) {
			usable, problem := v.mend(value)
			if problem == "" && usable != value {
				t.Errorf("%s: %q became %q in silence", v.name, value, usable)
			}
			if len(value) > 20 && strings.Contains(problem, value) {
				t.Errorf("%s: %s", v.name, problem)
			}
			if usable == "" {
				continue
			}
			if _, again := v.mend(usable); again != "" {
				t.Errorf("%s: what is left of %q is not good: %s", v.name, value, again)
			}
		}
	})
}
