package cloud

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

// environment is what the SDK's own variables say ("AWS SDKs and Tools Reference Guide", Settings reference). The SDK's config
// package would read them too, with much else (see the package's manual).
type environment struct {
	region       string
	ec2, sts     string // endpoints; empty: the region's
	metadataMode imds.EndpointModeState
	dualStack    aws.DualStackEndpointState
	fips         aws.FIPSEndpointState
	bundle       string // a file with the certificates to trust instead of the system's

	key, secret, session string // static credentials
	tokenFile, role      string // a web identity
	roleSession          string
	container            string // where container credentials are
	auth, authFile       string // what to show there
}

func readEnvironment() (environment, error) {
	e := environment{
		region: first("AWS_REGION", "AWS_DEFAULT_REGION"),
		bundle: os.Getenv("AWS_CA_BUNDLE"),
		key:    os.Getenv("AWS_ACCESS_KEY_ID"), secret: os.Getenv("AWS_SECRET_ACCESS_KEY"), session: os.Getenv("AWS_SESSION_TOKEN"),
		tokenFile: os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), role: os.Getenv("AWS_ROLE_ARN"), roleSession: os.Getenv("AWS_ROLE_SESSION_NAME"),
		auth: os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN"), authFile: os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
	}
	e.ec2 = os.Getenv("AWS_EC2_ENDPOINT") // amazon-vpc-cni-k8s's
	if !isTrue("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") {
		e.ec2 = firstOf(os.Getenv("AWS_ENDPOINT_URL_EC2"), e.ec2, os.Getenv("AWS_ENDPOINT_URL"))
		e.sts = first("AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL")
	}
	if isTrue("AWS_USE_DUALSTACK_ENDPOINT") {
		e.dualStack = aws.DualStackEndpointStateEnabled
	}
	if isTrue("AWS_USE_FIPS_ENDPOINT") {
		e.fips = aws.FIPSEndpointStateEnabled
	}
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"), "ipv6") {
		e.metadataMode = imds.EndpointModeStateIPv6
	}
	var container error
	e.container, container = containerEndpoint(os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"), os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))
	return e, errors.Join(container, e.contradictions())
}

// contradictions are all of them at once: one restart per mistake is too slow.
func (e *environment) contradictions() error {
	var all []error
	for _, u := range []struct{ name, value string }{{"EC2 endpoint", e.ec2}, {"STS endpoint", e.sts},
		{"AWS_EC2_METADATA_SERVICE_ENDPOINT", os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")}} {
		if p, err := url.Parse(u.value); u.value != "" && (err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https") {
			all = append(all, fmt.Errorf("%s is %q: expected a URL such as https://ec2.eu-west-1.amazonaws.com", u.name, u.value))
		}
	}
	if (e.key == "") != (e.secret == "") {
		all = append(all, errors.New("one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set without the other: set both or none"))
	}
	if e.tokenFile != "" && e.role == "" {
		all = append(all, errors.New("AWS_WEB_IDENTITY_TOKEN_FILE is set without AWS_ROLE_ARN: annotate the service account with eks.amazonaws.com/role-arn"))
	}
	return errors.Join(all...)
}

// containerHosts may be asked for credentials in clear text ("Container credential provider" of the SDK guide): ECS, EKS pod identity.
var containerHosts = []string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"}

func containerEndpoint(full, relative string) (string, error) {
	if full == "" && relative != "" {
		return "http://169.254.170.2" + relative, nil
	}
	if full == "" {
		return "", nil
	}
	u, err := url.Parse(full)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI is %q: expected a URL", full)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return full, nil
	}
	for _, h := range containerHosts {
		if u.Scheme == "http" && ip != nil && ip.Equal(net.ParseIP(h)) {
			return full, nil
		}
	}
	return "", fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI is %q: without https only the host itself, %s may be asked for credentials",
		full, strings.Join(containerHosts, ", "))
}

func first(names ...string) string {
	for _, n := range names {
		if v := os.Getenv(n); v != "" {
			return v
		}
	}
	return ""
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func isTrue(name string) bool { return strings.EqualFold(os.Getenv(name), "true") }
