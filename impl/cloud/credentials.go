package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// renewBefore is how long before their end credentials are renewed; half of it is jitter, for all nodes of a group start together.
const renewBefore = 5 * time.Minute

// noCredentials says that a request was not even signed.
type noCredentials struct {
	from string
	err  error
}

func (e *noCredentials) Error() string {
	return fmt.Sprintf("no credentials from %s: %v", e.from, shortened(e.err))
}

func (e *noCredentials) Unwrap() error { return e.err }

// source is a provider whose errors say where it looked.
type source struct {
	aws.CredentialsProvider
	from string
}

func (s *source) Retrieve(ctx context.Context) (aws.Credentials, error) {
	k, err := s.CredentialsProvider.Retrieve(ctx)
	if unauthorized(err) { // metadata's token had expired by its clock, not by ours
		k, err = s.CredentialsProvider.Retrieve(ctx)
	}
	if err != nil {
		return aws.Credentials{}, &noCredentials{s.from, err}
	}
	return k, nil
}

// HandleFailToRefresh goes on with credentials that metadata does not renew in time: EC2 decides whether they are still good
// (aws-sdk-go-v2, ec2rolecreds).
func (s *source) HandleFailToRefresh(ctx context.Context, old aws.Credentials, err error) (aws.Credentials, error) {
	if h, ok := s.CredentialsProvider.(aws.HandleFailRefreshCredentialsCacheStrategy); ok && old.HasKeys() {
		return h.HandleFailToRefresh(ctx, old, err)
	}
	return aws.Credentials{}, err
}

// credentials is where the environment says that they are, and nowhere else: a second best would have other permissions.
func (c *Cloud) credentials(region string) aws.CredentialsProvider {
	e, s := &c.env, &source{}
	switch {
	case e.key != "":
		return credentials.NewStaticCredentialsProvider(e.key, e.secret, e.session)
	case e.tokenFile != "":
		s.from = "the web identity in " + e.tokenFile
		s.CredentialsProvider = c.webIdentity(region)
	case e.container != "":
		s.from = e.container
		s.CredentialsProvider = c.containerCredentials()
	default:
		s.from = "the instance's role"
		s.CredentialsProvider = ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = c.imds })
	}
	return aws.NewCredentialsCache(s, func(o *aws.CredentialsCacheOptions) {
		o.ExpiryWindow, o.ExpiryWindowJitterFrac = renewBefore, 0.5
	})
}

// webIdentity are the credentials of the service account's role; its token is read anew each time, for kubelet rotates it.
func (c *Cloud) webIdentity(region string) aws.CredentialsProvider {
	api := sts.New(sts.Options{
		Region:          region,
		BaseEndpoint:    given(c.env.sts),
		EndpointOptions: sts.EndpointResolverOptions{UseDualStackEndpoint: c.env.dualStack, UseFIPSEndpoint: c.env.fips},
		Retryer:         aws.NopRetryer{},
		HTTPClient:      &bounded{c.outer, mostMetadata},
	})
	return stscreds.NewWebIdentityRoleProvider(api, c.env.role, stscreds.IdentityTokenFile(c.env.tokenFile), func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName = c.env.roleSession
		if o.RoleSessionName == "" {
			o.RoleSessionName = "aws-node-" + strconv.FormatInt(time.Now().Unix(), 10)
		}
	})
}

// containerCredentials are what EKS's pod identity agent, or ECS, hands out.
func (c *Cloud) containerCredentials() aws.CredentialsProvider {
	hc := c.direct
	if strings.HasPrefix(c.env.container, "https://") {
		hc = c.outer
	}
	return endpointcreds.New(c.env.container, func(o *endpointcreds.Options) {
		o.HTTPClient = &bounded{hc, mostMetadata}
		o.Retryer = aws.NopRetryer{}
		o.AuthorizationToken = c.env.auth
		if c.env.authFile != "" {
			o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
				token, err := os.ReadFile(c.env.authFile)
				return strings.TrimSpace(string(token)), err
			})
		}
	})
}

// unauthorized: metadata refused a token that is too old by its clock. The SDK has forgotten it by then, so the next request fetches
// another one. Its error says only that one may try again, which it says of nothing else.
func unauthorized(err error) bool {
	var again interface{ RetryableError() bool }
	return errors.As(err, &again) && again.RetryableError()
}

// status is the HTTP status that an SDK error carries; 0 is none.
func status(err error) int {
	var r *smithyhttp.ResponseError
	if errors.As(err, &r) && r.Response != nil {
		return r.HTTPStatusCode()
	}
	return 0
}
