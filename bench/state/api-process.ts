/** The embedded API server with a large cluster, as a process that its parent controls. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type KubeObject, kinds, nodeClaimCrd, nodePoolCrd } from '@tenon/api'
import { createApiServer, createCredentials, kubeconfigYaml, type LocalApi } from '@tenon/devcluster'
import { kwokNodeClassCrd } from '@tenon/provider-kwok'
import { rfc3339, rfc3339Micro, SeededRandom, serveHttps, silentLogger, SystemClock } from '@tenon/runtime'
import { Churn } from './churn.ts'
import { LaunchProbes } from './launch-probes.ts'
import { createUnschedulable, pendingPod } from './pending-pods.ts'
import { population } from './population.ts'

/** Requests of the parent. */
export type Order =
  /** @param pending additional pods for which no NodePool can launch a node. */
  | { readonly kind: 'fill'; readonly nodes: number; readonly pods: number; readonly pending?: number }
  /** Measures how long pods wait for their NodeClaims, one pod after the other. */
  | { readonly kind: 'probe'; readonly pods: number }
  /** @param probes pods that need a node of their own meanwhile, one after the other. */
  | { readonly kind: 'churn'; readonly perSecond: number; readonly seconds: number; readonly probes?: number }
  | { readonly kind: 'count' }
  /** Keeps every controller from leading. */
  | { readonly kind: 'hold-lease'; readonly namespace: string; readonly name: string }

/** Replies to the parent. */
export type Answer =
  | { readonly kind: 'filled'; readonly kubeconfigPath: string; readonly podBytes: number }
  | { readonly kind: 'churned'; readonly changes: number; readonly waitedMs: readonly number[] }
  | { readonly kind: 'counted'; readonly writes: number; readonly requests: number }
  | { readonly kind: 'held' }
  | { readonly kind: 'probed'; readonly waitedMs: readonly number[] }

const clock = new SystemClock()
/** Objects are this old, so that nothing happens because something is new. */
const ageMs = 3_600_000
const crdType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}
let churn: Churn | undefined
let probes: LaunchProbes | undefined
let local: LocalApi | undefined
let writes = 0
let requests = 0

process.on('message', (order: Order) => void obey(order).then((answer) => process.send?.(answer)))

async function obey(order: Order): Promise<Answer> {
  switch (order.kind) {
    case 'fill':
      return await fill(order)
    case 'churn': {
      const [changes = 0, waitedMs = []] = await Promise.all([
        churn?.run(order.perSecond, order.seconds),
        probes?.run(order.probes ?? 0),
      ])
      return { kind: 'churned', changes, waitedMs }
    }
    case 'count':
      return { kind: 'counted', writes, requests }
    case 'probe':
      return { kind: 'probed', waitedMs: (await probes?.run(order.pods)) ?? [] }
    case 'hold-lease':
      holdLease(order)
      return { kind: 'held' }
  }
}

function holdLease({ namespace, name }: { readonly namespace: string; readonly name: string }): void {
  const now = rfc3339Micro(clock.now())
  local?.create(kinds.lease, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: kinds.lease.kind,
    metadata: { namespace, name },
    spec: { holderIdentity: 'another', leaseDurationSeconds: 3600, acquireTime: now, renewTime: now },
  })
}

async function fill({ nodes, pods, pending = 0 }: Extract<Order, { kind: 'fill' }>): Promise<Answer> {
  const credentials = await createCredentials(clock.now())
  const objects = population({ nodes, pods }, clock.now() - ageMs)
  const server = createApiServer({
    clock,
    random: new SeededRandom('bench'),
    logger: silentLogger,
    adminToken: credentials.adminToken,
    signingKey: credentials.signingKey,
    initial: { revision: 1, objects },
  })
  for (const crd of [nodePoolCrd, nodeClaimCrd, kwokNodeClassCrd])
    server.local.create(crdType, crd as unknown as KubeObject)
  const socket = await serveHttps(
    (request, signal) => {
      requests++
      if (request.method !== 'GET') writes++
      return server.handle(request, signal)
    },
    {
      host: '127.0.0.1',
      port: 0,
      certificate: credentials.server.certificate,
      privateKey: credentials.server.privateKey,
      certificateAuthority: credentials.certificateAuthority.certificate,
    },
  )
  local = server.local
  const localKubernetes = server.localAs('kube-controller-manager')
  const at = rfc3339(clock.now() - ageMs)
  for (let index = 0; index < pending; index++)
    createUnschedulable(localKubernetes, pendingPod(index, at), at)
  probes = new LaunchProbes(localKubernetes, clock)
  churn = new Churn(server.localAs('kubelet'), clock, { nodes, pods })
  const folder = mkdtempSync(join(tmpdir(), 'tenon-bench-state-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const kubeconfigPath = join(folder, 'kubeconfig')
  writeFileSync(kubeconfigPath, kubeconfigYaml({ server: socket.url, credentials }), { mode: 0o600 })
  let podBytes = 0
  server.store.collection('pods').scan({}, (pod) => {
    podBytes = JSON.stringify(pod).length
    return false
  })
  return { kind: 'filled', kubeconfigPath, podBytes }
}
