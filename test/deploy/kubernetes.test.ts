import { posix } from 'node:path'
import { parseEnv } from 'node:util'
import test from 'ava'
import { readText, readYaml } from '../helpers/repository.js'
import { startTestServer } from '../helpers/server.js'
import type { Deployment, KubernetesObject, NetworkPolicy, Service } from './chart.js'
import { secretFiles, settingsFrom } from './settings.js'

const file = 'deploy/kubernetes/platform-auth-server.yaml'
const [deployment, service, budget, policy] = readYaml(file) as [
  Deployment,
  Service,
  KubernetesObject & Pick<Deployment, 'spec'>,
  NetworkPolicy
]
const [, , redisPolicy] = readYaml('deploy/kubernetes/redis.yaml') as [unknown, unknown, NetworkPolicy]
const pod = deployment.spec.template
const [container] = pod.spec.containers
const variables: Readonly<Record<string, string>> = {
  ...(parseEnv(readText('deploy/kubernetes/server.env')) as Record<string, string>),
  ...Object.fromEntries(container.env.map(({ name, value = '' }) => [name, value])),
  // The file has a placeholder.
  PLATFORM_CLIENT_ID: 'a-client'
}

test('the deployment, its service and its disruption budget select the same pods', t => {
  t.deepEqual([deployment.kind, service.kind, budget.kind], ['Deployment', 'Service', 'PodDisruptionBudget'])
  for (const labels of [
    deployment.spec.selector.matchLabels,
    service.spec.selector,
    budget.spec.selector.matchLabels
  ]) {
    t.like(pod.metadata.labels, labels)
  }
})

test('the server responds to the probes in the manifests', async t => {
  const { browser } = await startTestServer(t)
  for (const { httpGet } of [container.livenessProbe, container.readinessProbe]) {
    t.is(httpGet.port, 'http')
    t.is((await browser.get(httpGet.path)).statusCode, 200, httpGet.path)
  }
  t.not(container.livenessProbe.httpGet.path, container.readinessProbe.httpGet.path)
})

test('every secret file that the variables name is in the mounted secret', t => {
  const [mount] = container.volumeMounts
  const volume = pod.spec.volumes.find(({ name }) => name === mount?.name)
  const files = secretFiles(variables)
  t.is(files.length, 4)
  for (const path of files) {
    t.is(posix.dirname(path), String(mount?.mountPath))
    t.true(readText(file).includes(`--from-file=${posix.basename(path)}`), path)
  }
  t.true(readText(file).includes(`kubectl create secret generic ${volume?.secret?.secretName} `))
})

test('the replicas use a password for Redis, only they can reach it, and they can connect only to DNS, Redis and port 443', async t => {
  const { config } = await settingsFrom(t, variables)
  const { hosts: [redis] = [], password } = config.redis.url ?? {}
  t.is(redis?.host, 'redis')
  t.truthy(password)
  const matchLabels = { 'platform-auth-server/role': 'server' }
  t.like(pod.metadata.labels, matchLabels)
  t.deepEqual(redisPolicy.spec, {
    ...redisPolicy.spec,
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ podSelector: { matchLabels } }], ports: [{ port: redis?.port }] }]
  })
  t.deepEqual(policy.spec.policyTypes, ['Ingress', 'Egress'])
  const ports = policy.spec.egress?.map(({ ports }) => ports.map(({ port }) => port))
  t.deepEqual(ports, [[53, 53], [6379, 26379], [443]])
})

test('the ingress leads to the service, and the manifests for Redis have the host name that the deployment uses', t => {
  const [ingress] = readYaml('deploy/kubernetes/ingress.yaml') as [KubernetesObject]
  const backend = '{service: {name: platform-auth-server, port: {name: http}}}'
  t.is(ingress.kind, 'Ingress')
  t.true(readText('deploy/kubernetes/ingress.yaml').includes(backend))
  const callbackUrl = new URL(variables.PLATFORM_CALLBACK_URL ?? '')
  t.true(readText('deploy/kubernetes/ingress.yaml').includes(`host: ${callbackUrl.host}`))
  const [store, storeService] = readYaml('deploy/kubernetes/redis.yaml') as [KubernetesObject, KubernetesObject]
  t.deepEqual([store.kind, storeService.kind, storeService.metadata.name], ['StatefulSet', 'Service', 'redis'])
  const [monitor] = readYaml('deploy/kubernetes/service-monitor.yaml') as [KubernetesObject]
  t.is(monitor.kind, 'ServiceMonitor')
})
