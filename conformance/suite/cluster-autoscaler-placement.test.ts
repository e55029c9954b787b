/** `--planned-placement` of `tenon cluster-autoscaler`: the real scheduler puts pods where they were planned. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { createKubeClient, loadKubeConfig } from '@tenon/kube'
import { kinds, type Pod } from '@tenon/api'
import { createCacheRegistry } from '@tenon/kube'
import { SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'
import { ClusterAutoscalerProcess } from '../src/cluster-autoscaler-process.ts'
import { ExoscaleMirror } from '../src/exoscale-mirror.ts'
import { aDeployment, Cluster, conditionOf, sharedControlPlane, until } from './cluster.ts'
import { freePort } from './prometheus-server.ts'

const clock = new SystemClock()
/** Nodes of 4 CPUs, with room for a large pod and a small one. */
const pool = {
  id: 'c0030000-0000-4000-8000-000000000003',
  name: 'planned',
  type: 'standard.large',
  size: 1,
  joins: true as const,
  prefix: 'planned',
}
const each = 12
/** One node for each large pod, and half as many for small pods that the scheduler placed first; not one for each pod. */
const most = 1.5 * each
const operations = ['get-instance', 'get-instance-pool', 'get-operation', 'get-quota', 'scale-instance-pool']

interface Outcome {
  readonly members: number
  /** Pods that were ever nominated, by name, with the last node they were nominated for. */
  readonly nominated: number
  readonly asNominated: number
}

describe('--planned-placement of Cluster Autoscaler mode', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster

  before(async () => {
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
  })

  after(async () => {
    await controlPlane.stop()
  })

  /** Twelve large pods and twelve small ones that fit next to them are pending before the autoscaler starts. */
  async function play(context: TestContext, flags: readonly string[]): Promise<Outcome> {
    const folder = mkdtempSync(join(tmpdir(), 'tenon-cluster-autoscaler-'))
    const config = loadKubeConfig({ env: {}, kubeconfig: controlPlane.kubeconfigPath, clock })
    const admin = createKubeClient({ transport: config.transport, clock, userAgent: 'administrator' })
    const logger = silentLogger
    const random = new SeededRandom('cluster-autoscaler-placement')
    const stopping = new AbortController()
    for (const { metadata } of await admin.list(kinds.node)) await admin.delete(kinds.node, metadata)
    const mirror = await ExoscaleMirror.start({
      admin,
      seed: { instancePools: [pool] },
      operations,
      initializationMs: 6000,
    })
    const nominated = new Map<string, string>()
    const registry = createCacheRegistry({ client: admin, clock, logger, random })
    const pods = registry.cache(kinds.pod)
    pods.onChange(({ object: { metadata, status } }) => {
      const node = status?.nominatedNodeName ?? ''
      if (node !== '') nominated.set(metadata.name, node)
    })
    registry.start(stopping.signal)
    const autoscaler = new ClusterAutoscalerProcess({
      controlPlane,
      folder,
      args: [
        '--cloud-provider=exoscale',
        '--scan-interval=2s',
        '--scale-down-enabled=false',
        `--address=127.0.0.1:${await freePort()}`,
        ...flags,
      ],
      environment: mirror.environment,
    })
    const ours = async (): Promise<readonly Pod[]> =>
      (await admin.list(kinds.pod)).filter(({ metadata }) => /^(small|large)-/.test(metadata.name))
    try {
      await until('the first node is ready', 60, async () => {
        const nodes = await cluster.list('v1', 'Node')
        return nodes.length === 1 && nodes.every((node) => conditionOf(node, 'Ready') === 'True')
      })
      await cluster.create(aDeployment({ name: 'small', replicas: each, cpu: '800m', memory: '500Mi' }))
      await cluster.create(aDeployment({ name: 'large', replicas: each, cpu: '2900m', memory: '4Gi' }))
      await until('the scheduler has seen every pod', 60, async () => {
        const all = await ours()
        const isSeen = ({ spec, status }: Pod) =>
          (spec.nodeName ?? '') !== '' ||
          status?.conditions?.some(({ type, status: is }) => type === 'PodScheduled' && is === 'False')
        return all.length === 2 * each && all.every(isSeen)
      })
      autoscaler.start()
      await until('all pods run', 180, async () => {
        const all = await ours()
        return all.length === 2 * each && all.every(({ status }) => status?.phase === 'Running')
      })
      const all = await ours()
      const asNominated = all.filter(
        ({ metadata, spec }) =>
          nominated.has(metadata.name) && nominated.get(metadata.name) === spec.nodeName,
      )
      const members = mirror.members().length
      const outcome = { members, nominated: nominated.size, asNominated: asNominated.length }
      context.diagnostic(JSON.stringify({ flags, ...outcome }))
      assert.doesNotMatch(autoscaler.log(), /has no effect|bug in the loop|an iteration threw/)
      assert.equal(await autoscaler.end('SIGTERM'), 0)
      return outcome
    } finally {
      await autoscaler.end('SIGKILL')
      for (const name of ['small', 'large']) await cluster.delete('apps/v1', 'Deployment', name, 'default')
      await until('the pods are gone', 60, async () => (await ours()).length === 0)
      stopping.abort()
      await mirror.stop()
      config.close()
      rmSync(folder, { recursive: true })
    }
  }

  test('PLA-1 large and small pods share the nodes that were requested for them', async (context) => {
    const planned = await play(context, ['--planned-placement'])
    assert.ok(planned.nominated > 0)
    // Nothing holds these nodes back until their pods are nominated: how many go as nominated is chance.
    assert.ok(planned.members <= most, `${planned.members} members`)
  })

  test('CAS-26 nodes that no cloud controller has seen yet are waited for', async (context) => {
    const free = await play(context, [])
    assert.equal(free.nominated, 0)
    assert.ok(free.members >= each && free.members <= most, `${free.members} members`)
  })
})
