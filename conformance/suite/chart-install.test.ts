/** The charts on a real API server, and the controller with the rights and variables they give it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { V1Pod } from '@kubernetes/client-node'
import { SystemClock } from '@tenon/runtime'
import { auditLogFile, chartAccount, readAuditLog } from '../src/audit.ts'
import { chartsFolder, Helm, type Values } from '../src/chart/helm.ts'
import { PodRunner } from '../src/chart/pod-runner.ts'
import { grantedRights, type RoleObject, rightsReport } from '../src/chart/rights.ts'
import { rightsOfRareNeeds, rightsWithoutRequests, unreviewed } from '../src/chart/unused-rights.ts'
import {
  aDeployment,
  Cluster,
  kwokNode,
  sharedControlPlane,
  type TestObject,
  until,
  untilInitialized,
} from './cluster.ts'

const namespace = 'kube-system'
const chart = join(chartsFolder, 'tenon')
const crdChart = join(chartsFolder, 'tenon-crd')
/** Definitions that are there already may be anybody's. */
const takeOver = ['--take-ownership', '--force-conflicts']
/** Nodes for the controller itself. */
const hosts = ['chart-host-a', 'chart-host-b']
const poolCrd = 'nodepools.karpenter.sh'
const crdNames = [
  poolCrd,
  'nodeclaims.karpenter.sh',
  'nodeoverlays.karpenter.sh',
  'capacitybuffers.autoscaling.x-k8s.io',
  'exoscalenodeclasses.karpenter.exoscale.com',
  'kwoknodeclasses.karpenter.kwok.sh',
]

/** Everything on that asks the API server for something. */
const everything: Values = {
  logLevel: 'debug',
  controller: { resources: { requests: { cpu: '1' }, limits: { memory: '1Gi' } } },
  settings: {
    ignoreDRARequests: false,
    schedulerConfig: {
      podTopologySpread: {
        defaultConstraints: [
          { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
        ],
      },
    },
    featureGates: {
      spotToSpotConsolidation: true,
      nodeRepair: true,
      nodeOverlay: true,
      staticCapacity: true,
      globalConsolidation: true,
      plannedPlacement: true,
    },
  },
}

/** What every kubelet puts on its node. */
function hostLabels(name: string): Record<string, string> {
  return { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': name }
}

function aPool(name: string, more: object = {}): TestObject {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'chart' },
          requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
        },
      },
      disruption: {
        consolidationPolicy: 'WhenEmpty',
        consolidateAfter: '0s',
        budgets: [{ nodes: '100%' }],
      },
      ...more,
    },
  }
}

const nodeClass: TestObject = {
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: { name: 'chart' },
}

const anOverlay: TestObject = {
  apiVersion: 'karpenter.sh/v1alpha1',
  kind: 'NodeOverlay',
  metadata: { name: 'chart' },
  spec: {
    requirements: [{ key: 'karpenter.sh/nodepool', operator: 'In', values: ['chart'] }],
    priceAdjustment: '+1%',
  },
}

/** One for each kind of workload; each of them keeps no room. */
const buffers: readonly TestObject[] = ['Deployment', 'ReplicaSet', 'StatefulSet'].map((kind) => ({
  apiVersion: 'autoscaling.x-k8s.io/v1beta1',
  kind: 'CapacityBuffer',
  metadata: { name: `chart-${kind.toLowerCase()}`, namespace: 'default' },
  spec: { scalableRef: { apiGroup: 'apps', kind, name: 'chart-work' }, replicas: 0 },
}))

describe('the charts on a real control plane', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-chart-install-'))
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster
  let helm: Helm
  let runner: PodRunner | undefined

  before(async () => {
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    helm = await Helm.open(folder, controlPlane.kubeconfigPath)
    for (const name of hosts) await cluster.create(kwokNode(name, hostLabels(name)))
    // Other files of the suite may have left theirs, and the right to create it would go unused.
    await cluster.delete('coordination.k8s.io/v1', 'Lease', 'karpenter-leader-election', namespace)
  })

  after(async () => {
    await runner?.stop()
    await cluster.delete('apps/v1', 'Deployment', 'chart-work', 'default')
    await cluster.delete('karpenter.sh/v1alpha1', 'NodeOverlay', 'chart')
    for (const release of ['karpenter', 'karpenter-crd'])
      await helm.run(['uninstall', release, '--namespace', namespace, '--ignore-not-found'])
    for (const name of [...hosts, 'chart-own-node']) await cluster.delete('v1', 'Node', name)
    kubectl(['delete', 'crd', '--ignore-not-found', '--wait=false', ...crdNames])
    await controlPlane.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const kubectl = (args: readonly string[], input = '') => {
    const all = ['--kubeconfig', controlPlane.kubeconfigPath, ...args]
    const options = { encoding: 'utf8', input, stdio: 'pipe' } as const
    return execFileSync(join(controlPlane.binDir, 'kubectl'), all, options)
  }
  const upgrade = (values: Values, ...more: readonly string[]) =>
    helm.must(
      ['upgrade', '--install', 'karpenter', chart, '--namespace', namespace, '--skip-crds', ...more],
      values,
    )
  const controllerPods = async () =>
    (await cluster.list(
      'v1',
      'Pod',
      namespace,
      'app.kubernetes.io/instance=karpenter',
    )) as object[] as V1Pod[]
  const leader = async () => {
    const lease = await cluster.get('coordination.k8s.io/v1', 'Lease', 'karpenter-leader-election', namespace)
    return (lease?.spec?.['holderIdentity'] as string | undefined) ?? ''
  }
  const isPoolReady = async (wanted: string) => {
    const pool = await cluster.get('karpenter.sh/v1', 'NodePool', 'chart')
    return pool?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === wanted)
  }
  const claimsOf = (pool: string) =>
    cluster.list('karpenter.sh/v1', 'NodeClaim', undefined, `karpenter.sh/nodepool=${pool}`)
  /** The one pod whose process is up and ready; not the one named. */
  const readyPod = (but = '') =>
    until('a ready controller', 60, async () => {
      runner?.assertRunning()
      const pods = [...(runner?.running.values() ?? [])].filter(({ name }) => name !== but)
      const [pod] = pods
      if (pod === undefined || pods.length > 1) return undefined
      const answer = await fetch(`http://127.0.0.1:${pod.probePort}/readyz`).catch(() => undefined)
      return answer?.status === 200 ? pod : undefined
    })

  test('OPS-60 an upgrade of the CRD chart brings changed schemas to the cluster', async () => {
    const older = join(folder, 'tenon-crd')
    cpSync(crdChart, older, { recursive: true })
    const file = join(older, 'templates', `${poolCrd}.yaml`)
    const text = readFileSync(file, 'utf8')
    const narrower = text.replace(/(weight:\n(?: +.*\n)*? +maximum: )100\n/, '$150\n')
    assert.notEqual(narrower, text)
    writeFileSync(file, narrower)
    const install = (from: string) =>
      helm.must(['upgrade', '--install', 'karpenter-crd', from, '--namespace', namespace, ...takeOver])
    const heavy = JSON.stringify(aPool('heavy', { weight: 60 }))
    const accepts = () => kubectl(['create', '--dry-run=server', '-o', 'name', '-f', '-'], heavy)
    await install(older)
    // kubectl gives up on a definition that has no conditions yet.
    await until('the definitions are served', 20, async () => {
      try {
        return kubectl(['wait', '--for=condition=Established', '--timeout=20s', 'crd', ...crdNames]) !== ''
      } catch {
        return false
      }
    })
    assert.throws(accepts, /spec\.weight in body should be less than or equal to 50/)
    await install(crdChart)
    await until('the new schema is served', 10, async () => {
      try {
        return accepts().includes('nodepool.karpenter.sh/heavy')
      } catch {
        return false
      }
    })
  })

  test('OPS-55 with default values the objects are accepted, and the controller starts and leads', async () => {
    await upgrade({})
    const token = kubectl(['create', 'token', 'karpenter', '--namespace', namespace, '--duration=1h']).trim()
    const kubeconfigPath = join(folder, 'kubeconfig')
    const admin = JSON.parse(readFileSync(controlPlane.kubeconfigPath, 'utf8'))
    admin.users[0].user = { token }
    writeFileSync(kubeconfigPath, JSON.stringify(admin), { mode: 0o600 })
    runner = new PodRunner({ folder, kubeconfigPath, pods: controllerPods, clock: new SystemClock() })
    const pod = await readyPod()
    await until('a leader', 20, async () => (await leader()) !== '')
    const metrics = await fetch(`http://127.0.0.1:${pod.metricsPort}/metrics`)
    assert.equal(metrics.status, 200)
    await cluster.create(nodeClass)
    runner.assertRunning()
  })

  test('OPS-85 after a patch of its variables a new pod leads, and the old variables hold no more', async () => {
    await cluster.create(aPool('fixed', { replicas: 1, disruption: { consolidateAfter: '0s' } }))
    await until('the NodePool is looked at', 20, async () => {
      const pool = await cluster.get('karpenter.sh/v1', 'NodePool', 'fixed')
      return pool?.metadata?.annotations?.['karpenter.sh/nodepool-hash'] !== undefined
    })
    const previous = await readyPod()
    const leaderBefore = await leader()
    assert.match(previous.env['FEATURE_GATES'] ?? '', /StaticCapacity=false/)
    assert.deepEqual(await claimsOf('fixed'), [], 'static pools are not served')

    kubectl(['set', 'env', 'deployment/karpenter', '-n', namespace, 'FEATURE_GATES=StaticCapacity=true'])
    const now = await readyPod(previous.name)
    await until('the old one has ended', 20, () => Promise.resolve(previous.process.exitCode !== null))
    await until('another leader', 30, async () => {
      const identity = await leader()
      return identity !== '' && identity !== leaderBefore
    })
    assert.equal(now.env['FEATURE_GATES'], 'StaticCapacity=true')
    await until('the static pool is served', 30, async () => (await claimsOf('fixed')).length === 1)
    await cluster.delete('karpenter.sh/v1', 'NodePool', 'fixed')
    await until('its claim is gone', 60, async () => (await claimsOf('fixed')).length === 0)
  })

  test('OPS-61 with everything on, 20 pods come and go, and nothing is asked for that is not granted', async (t) => {
    const [previous] = runner?.running.keys() ?? []
    await upgrade(everything, '--force-conflicts')
    await readyPod(previous)
    const work = aDeployment({
      name: 'chart-work',
      replicas: 20,
      cpu: '3',
      memory: '1Gi',
      nodeSelector: { 'karpenter.sh/nodepool': 'chart' },
    })
    await cluster.create(aPool('chart', { limits: { cpu: '1000' } }))
    // An Event that is written a second time is counted.
    for (let turn = 0; turn < 2; turn++) {
      await cluster.delete(nodeClass.apiVersion ?? '', nodeClass.kind ?? '', 'chart')
      await until('the NodePool misses its class', 30, () => isPoolReady('False'))
      await cluster.create(nodeClass)
      await until('the NodePool has its class again', 30, () => isPoolReady('True'))
    }
    await cluster.create(anOverlay)
    await until('the overlay is judged', 30, async () => {
      const overlay = await cluster.get('karpenter.sh/v1alpha1', 'NodeOverlay', 'chart')
      return overlay?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
    })
    await cluster.create(work)
    const running = async () => {
      runner?.assertRunning()
      const pods = await cluster.list('v1', 'Pod', 'default', 'app=chart-work')
      return pods.length === 20 && pods.every(({ status }) => status?.phase === 'Running')
    }
    await until('20 pods run', 60, running)
    for (const buffer of buffers) await cluster.create(buffer)
    await until('each CapacityBuffer is judged', 30, async () => {
      const judged = await cluster.list('autoscaling.x-k8s.io/v1beta1', 'CapacityBuffer', 'default')
      return judged.length === buffers.length && judged.every(({ status }) => status?.conditions?.length)
    })
    for (const { apiVersion = '', kind = '', metadata } of buffers)
      await cluster.delete(apiVersion, kind, metadata?.name ?? '', 'default')
    const [drained] = await untilInitialized(cluster, 30, 'chart')
    await cluster.delete('karpenter.sh/v1', 'NodeClaim', drained?.metadata?.name ?? '')
    await until('a node is drained', 60, async () => {
      const claims = await claimsOf('chart')
      return claims.every(({ metadata }) => metadata?.uid !== drained?.metadata?.uid) && (await running())
    })
    await cluster.patch({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'chart-work', namespace: 'default' },
      spec: { replicas: 0 },
    })
    await until('the nodes are gone', 90, async () => {
      runner?.assertRunning()
      return (await claimsOf('chart')).length === 0
    })

    const events = readAuditLog(auditFolder()).filter(({ user }) => user.username === chartAccount)
    t.diagnostic(`${events.length} requests in ${auditLogFile(auditFolder())}`)
    const refused = events.filter(({ responseStatus }) => responseStatus?.code === 403)
    assert.deepEqual(
      refused.map(({ verb, objectRef, responseStatus }) => ({ verb, objectRef, responseStatus })),
      [],
    )
    const rights = grantedRights(await helm.objects<RoleObject>(chart, everything))
    const { unused, missing } = rightsReport(rights, events)
    assert.deepEqual(missing, [], 'what was asked for and comes from no role of the chart')
    t.diagnostic(`not used: ${unused.join('; ')}`)
    assert.deepEqual(
      unreviewed(unused, { ...rightsOfRareNeeds, ...rightsWithoutRequests }),
      [],
      'granted, never used, and not on the reviewed list',
    )
  })

  test('OPS-56 replicas run on different hosts, and never on a node of Karpenter', async () => {
    await runner?.stop()
    const own = { ...hostLabels('chart-own-node'), 'karpenter.sh/nodepool': 'chart' }
    await cluster.create(kwokNode('chart-own-node', own))
    await upgrade({ replicas: 2 }, '--force-conflicts')
    const spread = async () => {
      const pods = (await controllerPods()).filter(
        ({ metadata }) => metadata?.deletionTimestamp === undefined,
      )
      return pods.map(({ spec }) => spec?.nodeName ?? '').toSorted()
    }
    await until('two pods on two hosts', 60, async () => (await spread()).join() === hosts.join())
    await upgrade({ replicas: 3 }, '--force-conflicts')
    const waiting = await until('a third that nothing takes', 30, async () => {
      const pods = await controllerPods()
      return pods.find(({ status }) =>
        status?.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable'),
      )
    })
    assert.equal(waiting.spec?.nodeName, undefined)
    assert.deepEqual(
      (await spread()).filter((node) => node !== ''),
      hosts,
    )
  })

  test('after helm uninstall the definitions and what was made of them are still there', async () => {
    for (const release of ['karpenter', 'karpenter-crd'])
      await helm.must(['uninstall', release, '--namespace', namespace])
    assert.ok(await cluster.get('karpenter.sh/v1', 'NodePool', 'chart'))
    assert.deepEqual(await cluster.list('apps/v1', 'Deployment', namespace), [])
    await cluster.delete('karpenter.sh/v1', 'NodePool', 'chart')
  })

  function auditFolder(): string {
    return join(controlPlane.kubeconfigPath, '..')
  }
})
