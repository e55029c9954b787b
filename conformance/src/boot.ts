import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '@tenon/runtime'
import { type ApiProbe, waitForPath } from './api-probe.ts'
import { auditLogFile, auditPolicy } from './audit.ts'
import type { Binaries } from './binaries.ts'
import { type Credentials, prepareCredentials, writeKubeconfigs } from './credentials.ts'
import { kwokStages } from './kwok-stages.ts'
import type { ProcessGroup } from './processes.ts'

/** Non-default features of Kubernetes. */
export interface Features {
  /** Feature gates that are enabled in every program. */
  readonly gates: readonly string[]
  /** Additional API versions to serve, such as `scheduling.k8s.io/v1alpha2`. */
  readonly apis: readonly string[]
  /** Arguments of kube-scheduler's plugins in its only profile, by plugin. */
  readonly schedulerPlugins?: Readonly<Record<string, object>>
}

const standardFeatures: Features = { gates: [], apis: [] }

export interface BootOptions {
  /** The control plane writes only here. */
  readonly folder: string
  readonly binaries: Binaries
  readonly clock: Clock
  /** Receives the started programs. */
  readonly processes: ProcessGroup
  /** The environment of the programs. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly features?: Features
  /** Port of the API server; default: any free one. */
  readonly port?: number
}

/** A running control plane. */
export interface Booted {
  readonly endpoint: string
  readonly kubeconfigPath: string
  /** Such as `v1.36.3`. */
  readonly version: string
}

/** On a busy host, several processes that share two cores take minutes. */
const startTimeoutMs = 3 * 60_000
const defaultServiceAccount = '/api/v1/namespaces/default/serviceaccounts/default'

/** The entries that a control plane creates in its folder. */
export const folderEntries = [
  'etcd',
  'pki',
  'logs',
  'kwok',
  'audit-policy.json',
  'scheduler.json',
  'kubeconfig',
] as const

/**
 * Starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok and waits until pods can be
 * created.
 * @throws ProcessEndedError if one of them ends, Error after {@link startTimeoutMs}. The caller has to stop
 * what is in `options.processes`.
 */
export async function boot(options: BootOptions): Promise<Booted> {
  const { folder, clock, processes } = options
  for (const entry of ['etcd', 'logs', 'kwok']) {
    mkdirSync(join(folder, entry), { recursive: true, mode: 0o700 })
  }
  const deadline = new AbortController()
  const cancel = clock.after(startTimeoutMs, () => {
    const logs = join(folder, 'logs')
    deadline.abort(new Error(`the control plane was not ready after ${startTimeoutMs / 1000} s, see ${logs}`))
  })
  try {
    return await Promise.race([bootSteps(options, deadline.signal), processes.failure])
  } catch (error) {
    deadline.abort(error)
    throw error
  } finally {
    cancel()
  }
}

async function bootSteps(options: BootOptions, signal: AbortSignal): Promise<Booted> {
  const { folder, binaries, clock, environment, processes, features = standardFeatures } = options
  const credentials = prepareCredentials(join(folder, 'pki'))
  const [clientPort, peerPort, freePort] = await freePorts(3)
  const apiPort = options.port ?? freePort
  const gates = gateArguments(features)
  const etcd = `http://127.0.0.1:${clientPort}`
  const endpoint = `https://127.0.0.1:${apiPort}`
  const start = (name: keyof Binaries, args: readonly string[], more = {}) => {
    processes.start(name, binaries[name], args, { ...sparingCollector, ...environment, ...more })
  }
  start('etcd', etcdArguments(join(folder, 'etcd'), etcd, `http://127.0.0.1:${peerPort}`))
  const auditPolicyFile = join(folder, 'audit-policy.json')
  writeFileSync(auditPolicyFile, auditPolicy(environment))
  start('kube-apiserver', [
    ...apiserverArguments(credentials, etcd, apiPort ?? 0),
    `--audit-policy-file=${auditPolicyFile}`,
    `--audit-log-path=${auditLogFile(folder)}`,
    ...gates,
    ...(features.apis.length === 0
      ? []
      : [`--runtime-config=${features.apis.map((api) => `${api}=true`).join()}`]),
  ])
  const probe: ApiProbe = { endpoint, token: credentials.adminToken, clock }
  const version = (JSON.parse(await waitForPath(probe, '/version', signal)) as { gitVersion: string })
    .gitVersion
  writeKubeconfigs(credentials, endpoint)
  // Before, its rights do not exist, and kube-controller-manager ends when it is refused for 10 s.
  await waitForPath(probe, '/readyz', signal)
  start('kube-controller-manager', [...controllerManagerArguments(credentials), ...gates])
  start('kube-scheduler', [...schedulerArguments(credentials, folder, features), ...gates])
  const stages = join(folder, 'kwok', 'stages.yaml')
  writeFileSync(stages, kwokStages(version))
  // Otherwise kwok also reads a configuration in the user's home.
  start('kwok', kwokArguments(credentials, stages), { KWOK_WORKDIR: join(folder, 'kwok') })
  await waitForPath(probe, defaultServiceAccount, signal)
  // Last, so that the file's existence means that the control plane is ready.
  const kubeconfigPath = join(folder, 'kubeconfig')
  copyFileSync(credentials.kubeconfigs.admin, kubeconfigPath)
  return { endpoint, kubeconfigPath, version }
}

/**
 * Usually a control plane has its own hosts; here it shares processors with what is measured, and memory is
 * plentiful: Go's garbage collector should run rarely.
 */
export const sparingCollector = { GOGC: '400' } as const

function gateArguments({ gates }: Features): string[] {
  return gates.length === 0 ? [] : [`--feature-gates=${gates.map((gate) => `${gate}=true`).join()}`]
}

export function etcdArguments(data: string, client: string, peer: string): string[] {
  return [
    `--data-dir=${data}`,
    '--name=conformance',
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=conformance=${peer}`,
    // The data need not survive the host, and fsync would dominate the time of every write.
    '--unsafe-no-fsync',
  ]
}

export function apiserverArguments(credentials: Credentials, etcd: string, port: number): string[] {
  return [
    `--etcd-servers=${etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none',
    `--secure-port=${port}`,
    `--cert-dir=${credentials.certificateFolder}`,
    `--token-auth-file=${credentials.tokenFile}`,
    '--authorization-mode=Node,RBAC',
    // As in hardened clusters: setting an owner reference that blocks the owner's deletion needs a right.
    '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
    '--enable-bootstrap-token-auth=true',
    '--allow-privileged=true',
    '--service-cluster-ip-range=10.96.0.0/16',
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${credentials.serviceAccountPublicKeyFile}`,
    `--service-account-signing-key-file=${credentials.serviceAccountKeyFile}`,
  ]
}

function controllerManagerArguments(credentials: Credentials): string[] {
  return [
    `--kubeconfig=${credentials.kubeconfigs.controllerManager}`,
    `--service-account-private-key-file=${credentials.serviceAccountKeyFile}`,
    `--root-ca-file=${credentials.certificateFile}`,
    '--use-service-account-credentials=true',
    '--controllers=*,bootstrapsigner,tokencleaner',
    ...singleReplica,
  ]
}

function schedulerArguments(
  { kubeconfigs: { scheduler: kubeconfig } }: Credentials,
  folder: string,
  { schedulerPlugins }: Features,
): string[] {
  if (schedulerPlugins === undefined) return [`--kubeconfig=${kubeconfig}`, ...singleReplica]
  const configuration = join(folder, 'scheduler.json')
  const pluginConfig = Object.entries(schedulerPlugins).map(([name, args]) => ({ name, args }))
  const content = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    clientConnection: { kubeconfig, qps: 200, burst: 400 },
    leaderElection: { leaderElect: false },
    profiles: [{ schedulerName: 'default-scheduler', pluginConfig }],
  }
  writeFileSync(configuration, JSON.stringify(content))
  // With a file, flags for what it can say do not count.
  return [`--config=${configuration}`, '--secure-port=0']
}

/** No lease, no port, and no client-side rate limit below the API server's own. */
const singleReplica = [
  '--leader-elect=false',
  '--secure-port=0',
  '--kube-api-qps=200',
  '--kube-api-burst=400',
]

function kwokArguments(credentials: Credentials, stages: string): string[] {
  return [
    `--kubeconfig=${credentials.kubeconfigs.kwok}`,
    `--config=${stages}`,
    '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake',
    '--node-lease-duration-seconds=40',
    '--node-ip=127.0.0.1',
    '--cidr=10.0.0.1/16',
  ]
}

/** Loopback ports that were free a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject)
          server.listen(0, '127.0.0.1', () => {
            const address = server.address()
            resolve(address !== null && typeof address === 'object' ? address.port : 0)
          })
        }),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
