/**
 * The guides of docs/takeover, followed there and back, on the embedded cluster in the simulated cloud: a controller
 * outside of the cluster, without a lease in it, has launched the nodes, and Tenon is installed with Helm.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { SeededRandom, SystemClock } from '@tenon/runtime'
import { repositoryRoot } from '../../build/repository-root.ts'
import { startCluster } from '../../packages/cli/src/embedded/cluster.ts'
import { simulatedCloud } from '../../packages/cli/src/embedded/simulated-cloud.ts'
import { Cluster, kwokNode, sharedControlPlane } from './cluster.ts'
import { followTakeover, type Place } from './takeover-stand.ts'

const clock = new SystemClock()
const logger = { debug() {}, info() {}, warn() {}, error() {}, with: () => logger }

type Cloud = Pick<Place, 'provider' | 'isManaged' | 'nodeClass' | 'nodeClassRef'>

/** Follows the guide in an embedded cluster with a node that belongs to no NodePool. */
async function followEmbedded(t: TestContext, cloud: Cloud): Promise<void> {
  const cwd = mkdtempSync(join(tmpdir(), 'tenon-takeover-cluster-'))
  const io = {
    env: {},
    cwd,
    out: () => undefined,
    err: () => undefined,
    isTerminal: false,
    input: () => Promise.resolve(''),
    size: () => ({ columns: 80, rows: 24 }),
    interrupted: new AbortController().signal,
  }
  const options = { port: 0, apiPort: 0, bootDelay: 500, nodeGroups: true }
  const random = new SeededRandom('takeover')
  const simulated = await simulatedCloud(cloud.provider, cwd)
  const running = await startCluster(io, simulated, options, { clock, random, logger })
  try {
    const { settings } = running
    const reader = { ...settings, TENON_IMAGE: 'registry.example.com/tenon' }
    const kubeconfigPath = join(cwd, running.kubeconfig)
    await followTakeover({ ...cloud, kubeconfigPath, reader, controllers: settings }, (line) =>
      t.diagnostic(line),
    )
  } finally {
    await running.stop()
    rmSync(cwd, { recursive: true, force: true })
  }
}

describe('the guides of docs/takeover', { concurrency: false }, () => {
  test('ADO-8 from the Karpenter add-on of SKS to Tenon and back, with kill -9 after every step, no node changes', async (t) => {
    await followEmbedded(t, {
      provider: 'exoscale',
      isManaged: true,
      nodeClass: `
apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata: { name: work }
spec: { imageTemplateSelector: {}, diskSize: 50 }
`,
      nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass' },
    })
  })

  test('ADO-8 from Karpenter on Clever Cloud to Tenon and back, with kill -9 after every step, no node changes', async (t) => {
    await followEmbedded(t, {
      provider: 'clever-cloud',
      isManaged: false,
      nodeClass: `
apiVersion: karpenter.clever-cloud.com/v1alpha1
kind: CleverNodeClass
metadata: { name: work }
spec: { labels: {} }
`,
      nodeClassRef: { group: 'karpenter.clever-cloud.com', kind: 'CleverNodeClass' },
    })
  })

  test('ADO-8 from Karpenter on Cluster API to Tenon and back, with kill -9 after every step, no node changes', async (t) => {
    await followEmbedded(t, {
      provider: 'cluster-api',
      isManaged: false,
      nodeClass: `${readFileSync(join(repositoryRoot, 'examples/cluster-api/hub/three-sizes.yaml'), 'utf8')}
---
apiVersion: karpenter.cluster.x-k8s.io/v1alpha1
kind: ClusterAPINodeClass
metadata: { name: work }
spec: {}
`,
      nodeClassRef: { group: 'karpenter.cluster.x-k8s.io', kind: 'ClusterAPINodeClass' },
    })
  })

  test('ADO-8 on a real control plane from Karpenter to Tenon and back, with kill -9 after every step, no node changes', async (t) => {
    const controlPlane = await sharedControlPlane()
    const { kubeconfigPath } = controlPlane
    const cluster = new Cluster(kubeconfigPath)
    const host = 'takeover-host'
    await cluster.create(kwokNode(host, { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': host }))
    try {
      await followTakeover(
        {
          provider: 'kwok',
          isManaged: false,
          kubeconfigPath,
          reader: { TENON_IMAGE: 'registry.example.com/tenon' },
          controllers: {},
          nodeClass: `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: { name: work }
`,
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass' },
        },
        (line) => t.diagnostic(line),
      )
    } finally {
      await cluster.delete('v1', 'Node', host)
      await controlPlane.stop()
    }
  })
})
