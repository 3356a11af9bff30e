package kube

import (
	"reflect"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"hooklock/deploy/test/kit"
)

// admitted is the pod as an API server with the policy would store it, nil where the policy is not
// for it: the same compiler, matcher and patcher, called in the same order.
func admitted(t *testing.T, p *admissionv1.MutatingAdmissionPolicy, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	has := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler, err := plugincel.NewCompositedCompiler(
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	var conditions []plugincel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Variables {
		compiler.CompileAndStoreVariables([]plugincel.NamedExpressionAccessor{named{v}}, has,
			environment.StoredExpressions)
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, has, environment.StoredExpressions),
		p.Spec.FailurePolicy, "policy", "validate", p.Name)

	pod.Kind, pod.APIVersion = "Pod", "v1"
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	attributes := &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(pod, nil, kind, "default", pod.Name, resource, "",
			admission.Create, &metav1.CreateOptions{}, false, nil),
		VersionedKind: kind, VersionedObject: pod,
	}
	ctx := compiler.CreateContext(t.Context())
	match := matcher.Match(ctx, attributes, nil, nil)
	if match.Error != nil || !match.Matches {
		return nil, match.Error
	}
	has.HasPatchTypes = true
	var object runtime.Object = pod
	for _, m := range p.Spec.Mutations {
		patcher := patch.NewJSONPatcher(
			compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, has,
				environment.StoredExpressions))
		object, err = patcher.Patch(ctx, patch.Request{
			MatchedResource: resource, VersionedAttributes: attributes,
			ObjectInterfaces: admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme),
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return nil, err
		}
	}
	return object.(*corev1.Pod), nil
}

// named makes a Variable an accessor.
type named struct{ admissionv1.Variable }

// GetExpression implements plugincel.NamedExpressionAccessor.
func (n named) GetExpression() string { return n.Expression }

// GetName implements plugincel.NamedExpressionAccessor.
func (n named) GetName() string { return n.Name }

// ReturnTypes implements plugincel.NamedExpressionAccessor.
func (n named) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType, celgo.DynType} }

func shippedPolicy(t *testing.T) *admissionv1.MutatingAdmissionPolicy {
	t.Helper()
	all := Objects(t, kit.Read(t, kit.Deploy("kubernetes/mutatingadmissionpolicy.yaml")))
	binding, p := Of[*admissionv1.MutatingAdmissionPolicyBinding](t, all),
		Of[*admissionv1.MutatingAdmissionPolicy](t, all)
	if binding.Spec.PolicyName != p.Name {
		t.Errorf("the binding is for %q", binding.Spec.PolicyName)
	}
	return p
}

// plain is a pod of the example, as a ReplicaSet makes it before anything of Hooklock is there.
func plain(t *testing.T, annotations map[string]string) *corev1.Pod {
	t.Helper()
	template := Of[*appsv1.Deployment](t, Objects(t, before(t))).Spec.Template
	template.Annotations = annotations
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
}

func TestThePolicyPutsTheSameContainerIntoAPodAsTheComponent(t *testing.T) {
	deployment, _ := example(t)
	want := &deployment.Spec.Template
	for name, pod := range map[string]*corev1.Pod{
		"a bare pod": plain(t, map[string]string{"hooklock-port": "8080"}),
		"a pod that has everything": func() *corev1.Pod {
			pod := plain(t, map[string]string{"hooklock-port": "8080"})
			patience := int64(300)
			pod.Spec.TerminationGracePeriodSeconds = &patience
			pod.Spec.Volumes = []corev1.Volume{{Name: "token",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			pod.Spec.InitContainers = []corev1.Container{{Name: "migrate", Image: "registry.example.com/shop:4.2"}}
			return pod
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			had := pod.DeepCopy()
			got, err := admitted(t, shippedPolicy(t), pod)
			if err != nil || got == nil {
				t.Fatalf("%v, %v", got, err)
			}
			got.Name = "shop-1"
			if err := Validate(got); err != nil {
				t.Error(err)
			}
			if mine, theirs := Sidecar(t, &got.Spec), Sidecar(t, &want.Spec); !reflect.DeepEqual(mine, theirs) {
				t.Errorf("another container:\n%v\nwant\n%v", mine, theirs)
			}
			if got.Spec.InitContainers[0].Name != "hooklock" ||
				len(got.Spec.InitContainers) != 1+len(had.Spec.InitContainers) || got.Labels["hooklock"] != "sidecar" ||
				got.Labels["app"] != "shop" {
				t.Errorf("labels %v, %d init containers", got.Labels, len(got.Spec.InitContainers))
			}
			if n := len(got.Spec.Volumes); n != 3+len(had.Spec.Volumes) ||
				*got.Spec.TerminationGracePeriodSeconds < 60 ||
				had.Spec.TerminationGracePeriodSeconds != nil && *got.Spec.TerminationGracePeriodSeconds != 300 {
				t.Errorf("%d volumes, patience %d", n, *got.Spec.TerminationGracePeriodSeconds)
			}
		})
	}
}

func TestThePolicyLeavesOtherPodsAloneAndRefusesWhatItCannotRead(t *testing.T) {
	if got, err := admitted(t, shippedPolicy(t), plain(t, nil)); got != nil || err != nil {
		t.Errorf("a pod that did not ask: %v, %v", got, err)
	}
	asking := map[string]string{"hooklock-port": "8080"}
	once, err := admitted(t, shippedPolicy(t), plain(t, asking))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := admitted(t, shippedPolicy(t), once); got != nil || err != nil {
		t.Errorf("a pod that has it: %v, %v", got, err)
	}
	// What is no port is passed on without an error, whose text would be the policy's whole
	// expression; the validating policy refuses it.
	for _, port := range []string{"http", "0", "-1", "99999", "08080", "65536", ""} {
		if got, err := admitted(t, shippedPolicy(t), plain(t, map[string]string{"hooklock-port": port})); got != nil ||
			err != nil {
			t.Errorf("port %q: %v, %v", port, got, err)
		}
	}
}

// A quota on limits.cpu refuses a pod with a container that has no such limit.
func TestThePolicyLimitsTheCPUWhereAllOfYourContainersAreLimited(t *testing.T) {
	limited := plain(t, map[string]string{"hooklock-port": "8080"})
	limited.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	for want, pod := range map[string]*corev1.Pod{"1": limited,
		"0": plain(t, map[string]string{"hooklock-port": "8080"})} {
		got, err := admitted(t, shippedPolicy(t), pod)
		if err != nil {
			t.Fatal(err)
		}
		if cpu := Sidecar(t, &got.Spec).Resources.Limits.Cpu(); cpu.String() != want {
			t.Errorf("limits.cpu is %v, want %s", cpu, want)
		}
	}
}

// refused is what an API server with the validating policy says against a pod, empty where it says
// nothing.
func refused(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	p := Of[*admissionv1.ValidatingAdmissionPolicy](t,
		Objects(t, kit.Read(t, kit.Deploy("kubernetes/mutatingadmissionpolicy.yaml"))))
	has := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler, err := plugincel.NewCompositedCompiler(
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range p.Spec.Variables {
		compiler.CompileAndStoreVariables([]plugincel.NamedExpressionAccessor{named{admissionv1.Variable(v)}}, has,
			environment.StoredExpressions)
	}
	var conditions, validations, messages []plugincel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, has, environment.StoredExpressions),
		p.Spec.FailurePolicy, "policy", "validate", p.Name)
	v := validating.NewValidator(
		compiler.CompileCondition(validations, has, environment.StoredExpressions), matcher,
		compiler.CompileCondition(nil, has, environment.StoredExpressions),
		compiler.CompileCondition(messages, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions),
		p.Spec.FailurePolicy, nil)

	pod.Kind, pod.APIVersion = "Pod", "v1"
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	result := v.Validate(t.Context(), resource, &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(pod, nil, kind, "shop", pod.Name, resource, "", admission.Create,
			&metav1.CreateOptions{}, false, nil),
		VersionedKind: kind, VersionedObject: pod,
	}, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, celconfig.RuntimeCELCostBudget, nil)
	for _, d := range result.Decisions {
		if d.Action != validating.ActionAdmit {
			return d.Message
		}
	}
	return ""
}

func TestAPodThatAsksAndCannotHaveItIsRefusedInWords(t *testing.T) {
	asking := func(port string) *corev1.Pod { return plain(t, map[string]string{"hooklock-port": port}) }
	guarded := func(port string, containers ...corev1.Container) *corev1.Pod {
		pod := asking(port)
		pod.Spec.Containers = append(containers, pod.Spec.Containers...)
		got, err := admitted(t, shippedPolicy(t), pod)
		if err != nil || got == nil {
			t.Fatalf("%v, %v", got, err)
		}
		return got
	}
	fpm := corev1.Container{Name: "php-fpm", Image: "php:8.4", Ports: []corev1.ContainerPort{{ContainerPort: 9000}}}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"it did not ask":          {plain(t, nil), ""},
		"it has it":               {guarded("8080"), ""},
		"nginx before php-fpm":    {guarded("8080", fpm), ""},
		"php-fpm itself":          {guarded("9000", fpm), `hooklock-port: "9000" is where php-fpm takes FastCGI`},
		"another thing at 9000":   {guarded("9000", corev1.Container{Name: "app", Image: "app", Ports: fpm.Ports}), ""},
		"an unlabelled namespace": {asking("8080"), "kubectl label namespace shop hooklock=enabled"},
		"port 0":                  {asking("0"), `hooklock-port: "0" is no port: write the number, 1 to 65535`},
		"port -1":                 {asking("-1"), `hooklock-port: "-1" is no port`},
		"port 99999":              {asking("99999"), `hooklock-port: "99999" is no port`},
		"a name":                  {asking("http"), `hooklock-port: "http" is no port`},
	} {
		if got := refused(t, c.pod); c.want == "" && got != "" || !strings.Contains(got, c.want) || len(got) > 200 {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
