// Values of the chart that the examples do not show. `npm run test:kubernetes` renders each of them with the example two-replicas.

/** Values in the form of `helm --set` that the chart must reject, and a part of its message. */
export const rejectedValues: readonly (readonly [values: string, message: string])[] = [
  ['clientId=', 'Set clientId to the client id at the identity provider.'],
  ['callbackUrl=', 'Set callbackUrl to the public URL of /api/auth/callback'],
  [
    'callbackUrl=https://app.example.com/callback',
    'It must begin with https:// or http:// and end with /api/auth/callback.'
  ],
  ['existingSecret=', 'Set existingSecret to the name of a Secret'],
  ['externalRedis.secretKey=', 'Several replicas need Redis'],
  ['externalRedis.secretKey=,replicaCount=1,autoscaling.enabled=true', 'Several replicas need Redis'],
  ['externalRedis.url=redis://:password@redis:6379', 'externalRedis.url contains a password'],
  ['externalRedis.url=redis://redis?sentinel=main&sentinelPassword=abc', 'externalRedis.url contains a password'],
  ['externalRedis.url=redis:6379', 'externalRedis.url must begin with redis:// or rediss://.'],
  [
    'autoscaling.enabled=true,autoscaling.minReplicas=7',
    'autoscaling.minReplicas is 7, which is more than autoscaling.maxReplicas (6).'
  ],
  [
    'shutdown.grace=35',
    'terminationGracePeriodSeconds is 40. It must be longer than shutdown.delay and shutdown.grace together (40)'
  ],
  ['wwwroot.image=pages:1', 'wwwroot.configMap and wwwroot.image exclude each other.'],
  ['ingress.tls=null', 'callbackUrl begins with https://, but the Ingress has no TLS'],
  ['httpRoute.enabled=true', 'Set httpRoute.parentRefs to the gateways of the route.'],
  ['service.nodePort=30080', 'service.nodePort has no effect with service.type ClusterIP.'],
  ['forwardAuth.port=8080', 'forwardAuth.port is 8080, which is the port of the login or of the metrics in the pod.'],
  ['serviceAccount.create=false,serviceAccount.annotations.a=b', 'serviceAccount.annotations has no effect'],
  ['env.PORT=80', 'env: PORT is set by the chart; use service.port, because the container always listens on port 8080'],
  ['env.PLATFORM_TIMEOUT=20', 'env: PLATFORM_TIMEOUT must be a string. Write its value with quotes.'],
  ['extraEnv[0].name=PLATFORM_AUTH_MODE', 'extraEnv: PLATFORM_AUTH_MODE is set by the chart; use mode'],
  [
    'env.SERVER_SESSION_SECRET_FILE=/secret',
    'env: SERVER_SESSION_SECRET_FILE is set by the chart; use the key session-secret of existingSecret'
  ],
  ...['DB_PASSWORD', 'API_KEY', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'].map(
    name => [`env.${name}=x`, `env: ${name} can be a secret`] as const
  ),
  ['env.https_proxy=http://user:password@proxy:3128', 'env: https_proxy can be a secret'],
  ['env.LOG_LEVEL=debug,extraEnv[0].name=LOG_LEVEL', 'LOG_LEVEL is in env and in extraEnv.'],
  ['extraEnv[0].name=DB_PASSWORD,extraEnv[0].value=x', 'extraEnv: DB_PASSWORD can be a secret'],
  [
    'callbackUrl=https://app.example.com/login/api/auth/callback',
    'callbackUrl has the base path /login/, which the server does not expect in the paths of requests'
  ],
  ['trustForwardedFor=true', 'trustForwardedFor'],
  ['forwardauth.enabled=true', 'forwardauth'],
  ['image.name=x', 'name'],
  ['networkPolicy.egress.to=x', 'to']
]

/** Values that the chart must accept, and a pattern that its output then contains or, if `not` is given, no longer contains. */
export const acceptedValues: readonly (readonly [values: string, pattern: RegExp, not?: 'not'])[] = [
  ['trustForwardedFor=2', /\{name: LOG_TRUST_FORWARDED_FOR, value: "2"\}/],
  ['callbackUrl=https://app.example.com/login/api/auth/callback,ingress.stripsBasePath=true', /- path: \/login\/\n/],
  [
    'callbackUrl=https://app.example.com/login/api/auth/callback,ingress.enabled=false,httpRoute.enabled=true,httpRoute.path=/api/auth/,httpRoute.parentRefs[0].name=public',
    /value: \/login\/api\/auth\/\}\n +filters:\n +- type: URLRewrite\n +urlRewrite: \{path: \{type: ReplacePrefixMatch, replacePrefixMatch: \/api\/auth\/\}\}/
  ],
  ['httpRoute.enabled=true,httpRoute.parentRefs[0].name=public', /URLRewrite/, 'not'],
  ['enabled=true', /kind: Deployment/],
  ['nameOverride=login', /app\.kubernetes\.io\/name: login\n(?:.*\n)*? +platform-auth-server\/role: server/],
  // kubeconform rejects duplicate keys.
  [
    'commonLabels.app\\.kubernetes\\.io/version=v2,commonLabels.app\\.kubernetes\\.io/name=x',
    /app\.kubernetes\.io\/name: x/,
    'not'
  ],
  ['commonLabels.app\\.kubernetes\\.io/version=v2', /app\.kubernetes\.io\/version: v2/],
  ['networkPolicy.enabled=false', /kind: NetworkPolicy/, 'not'],
  ['podDisruptionBudget.enabled=false', /kind: PodDisruptionBudget/, 'not'],
  ['securityContext=null', /allowPrivilegeEscalation/, 'not'],
  ['securityContext.runAsUser=4000', /runAsUser: 4000/],
  ['strategy.type=Recreate', /rollingUpdate/, 'not'],
  ['topologySpreadConstraints=null', /topologySpreadConstraints/, 'not'],
  ['ingress.tls=null,ingress.externalTls=true', /secretName: app-example-com-tls/, 'not'],
  ['ingress.path=/api/auth/', /path: \/api\/auth\//],
  ['forwardAuth.enabled=true,forwardAuth.port=4200', /\{name: PLATFORM_AUTH_FORWARD_AUTH_ADDRESS, value: ":4200"\}/],
  ['service.type=NodePort', /type: NodePort/],
  ['serviceAccount.create=false', /serviceAccountName|kind: ServiceAccount/, 'not'],
  ...['PLATFORM_TOKEN_ENDPOINT', 'PLATFORM_CLIENT_KEY_ID', 'PLATFORM_AUTH_API_PROXY_REQUEST_HEADERS', 'NO_PROXY'].map(
    name => [`env.${name}=x`, new RegExp(`name: ${name}`)] as const
  ),
  ['env.HTTPS_PROXY=http://proxy:3128', /name: HTTPS_PROXY/],
  ['extraEnv[0].name=DB_PASSWORD,extraEnv[0].valueFrom.fieldRef.fieldPath=spec.nodeName', /name: DB_PASSWORD/]
]
