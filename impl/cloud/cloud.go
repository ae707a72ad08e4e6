package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/enilab/enilab/impl/ipam"
)

// DefaultTimeout is the default of amazon-vpc-cni-k8s's HTTP_TIMEOUT.
const DefaultTimeout = 10 * time.Second

// Config of a Cloud. The zero value is useful on an instance.
type Config struct {
	Region  string            // empty: AWS_REGION, else the instance's own, asked for when EC2 is first needed
	Cluster string            // CLUSTER_NAME; empty: Leaked looks for ENIs that no cluster's name is on
	Tags    map[string]string // ADDITIONAL_ENI_TAGS, put on every new ENI; none of ours can be overridden
	NoEC2   bool              // ENABLE_IMDS_ONLY_MODE: what needs EC2 is an error, and limits that the table does not know are zero
	Timeout time.Duration     // HTTP_TIMEOUT, of one HTTP request with its answer; 0: DefaultTimeout
	Log     *slog.Logger      // every request to EC2 and what became of it, at Debug; nil: nothing
}

// Cloud speaks with EC2 and instance metadata. Its methods may be called at once.
type Cloud struct {
	cfg    Config
	env    environment
	direct *http.Client // metadata and what lies beside it: never through a proxy
	outer  *http.Client // EC2, STS
	imds   *imds.Client

	mu     sync.Mutex // guards what follows; never held during a request
	ec2    *ec2.Client
	self   *ipam.Instance          // identity without VPC, which never changes; nil until it was read whole
	places map[string]place        // by ENI ID
	cidrs  map[string]netip.Prefix // by subnet ID
}

// New makes a Cloud. It sends no request, so a daemon comes up while metadata is silent. It fails on an environment
// that contradicts itself.
func New(_ context.Context, c Config) (*Cloud, error) {
	env, err := readEnvironment()
	if err != nil {
		return nil, err
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("HTTP_TIMEOUT is %v: expected a positive duration", c.Timeout)
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Region = cmp.Or(c.Region, env.region)
	o := &Cloud{cfg: c, env: env, places: map[string]place{}, cidrs: map[string]netip.Prefix{}}
	if o.direct, o.outer, err = clients(env.bundle, c.Timeout); err != nil {
		return nil, err
	}
	o.imds = imds.New(imds.Options{
		HTTPClient:            &bounded{o.direct, mostMetadata},
		Retryer:               aws.NopRetryer{},
		EnableFallback:        aws.FalseTernary, // a token that cannot be had is an answer, not a reason to ask without one
		EndpointMode:          env.metadataMode,
		DisableDefaultTimeout: true, // the client has one
	})
	return o, nil
}

// Close gives back idle connections.
func (c *Cloud) Close() {
	c.direct.CloseIdleConnections()
	c.outer.CloseIdleConnections()
}

// api is the EC2 client; it needs the region, which only metadata may know.
func (c *Cloud) api(ctx context.Context) (*ec2.Client, error) {
	if c.cfg.NoEC2 {
		return nil, errors.New("EC2 is not called: ENABLE_IMDS_ONLY_MODE is true")
	}
	c.mu.Lock()
	have := c.ec2
	c.mu.Unlock()
	if have != nil {
		return have, nil
	}
	region, err := c.region(ctx)
	if err != nil {
		return nil, err
	}
	made := ec2.New(ec2.Options{
		Region:          region,
		BaseEndpoint:    given(c.env.ec2),
		EndpointOptions: ec2.EndpointResolverOptions{UseDualStackEndpoint: c.env.dualStack, UseFIPSEndpoint: c.env.fips},
		Credentials:     c.credentials(region),
		Retryer:         aws.NopRetryer{},
		HTTPClient:      &recorder{c.outer},
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ec2 == nil {
		c.ec2 = made
	}
	return c.ec2, nil
}

// region is the configured one or, by the identity document, the instance's.
func (c *Cloud) region(ctx context.Context) (string, error) {
	if c.cfg.Region != "" {
		return c.cfg.Region, nil
	}
	doc, err := c.imds.GetRegion(ctx, nil)
	if unauthorized(err) {
		doc, err = c.imds.GetRegion(ctx, nil)
	}
	if err != nil {
		return "", fmt.Errorf("AWS_REGION is not set and the instance does not say its region: %w", shortened(err))
	}
	return doc.Region, nil
}

// given is nil for what was not configured.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
