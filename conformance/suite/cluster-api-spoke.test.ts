/** The provider for Cluster API with nodes in one cluster and Machines in another, which goes away for a while. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { KubeConfig } from '@kubernetes/client-node'
import { kinds } from '@tenon/api'
import { podDeleters } from '../src/audit.ts'
import { SeveredLine } from '../src/cluster-api/severed-line.ts'
import { startControlPlane } from '../src/control-plane.ts'
import { sharedControlPlane } from './cluster.ts'
import { ClusterApiStand, podCount, writeAccount } from './cluster-api-stand.ts'

/** Each of the two ways in which the hub is away; ten minutes in all with TENON_HUB_AWAY=full. */
const isLong = process.env['TENON_HUB_AWAY'] === 'full'
const awayMs = isLong ? 300_000 : 20_000
const more = 4

describe('tenon controller --provider cluster-api with a hub of its own', () => {
  let spoke: Awaited<ReturnType<typeof sharedControlPlane>>
  let hubControlPlane: Awaited<ReturnType<typeof startControlPlane>>
  let stand: ClusterApiStand
  let line: SeveredLine
  let folder: string

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tenon-spoke-'))
    ;[spoke, hubControlPlane] = await Promise.all([sharedControlPlane(), startControlPlane()])
    line = await SeveredLine.open(hubControlPlane.endpoint)
    const hubKubeconfig = join(folder, 'hub.kubeconfig')
    writeAccount(hubControlPlane, hubKubeconfig, line.endpoint)
    stand = await ClusterApiStand.open({
      controlPlane: spoke,
      hubControlPlane,
      environment: { CLUSTER_API_KUBECONFIG: hubKubeconfig },
    })
    stand.controller.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed) process.stderr.write(stand.endOfLog())
  })

  after(async () => {
    await stand.close()
    await line.close()
    rmSync(folder, { recursive: true, force: true })
    await hubControlPlane.stop()
    await spoke.stop()
  })

  /** What may not change while the hub is away. */
  async function everything(): Promise<object> {
    const [pods, claims, machines, nodes] = await Promise.all([
      stand.pods(),
      stand.claims(),
      stand.machines(),
      stand.hub.workload.list(kinds.node),
    ])
    const isRunning = ({ status }: (typeof pods)[number]) => status?.phase === 'Running'
    const uids = (objects: readonly { readonly metadata: { readonly uid?: string } }[]) =>
      new Set(objects.map(({ metadata }) => metadata.uid))
    return {
      pods: uids(pods.filter(isRunning)),
      // Pods that wait may have claims that wait.
      claims: uids(claims.filter(({ status }) => status?.providerID !== undefined)),
      machines: uids(machines),
      nodes: uids(nodes),
      deleted: [...pods, ...claims, ...machines, ...nodes]
        .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
        .map(({ metadata }) => metadata.name),
      tainted: nodes.filter(({ spec }) => spec?.taints?.some(({ key }) => key === 'karpenter.sh/disrupted'))
        .length,
    }
  }

  test('pods run on Machines of the hub, whose API server knows Tenon by another account', async () => {
    await stand.fill()
    await stand.untilRunning(podCount)
    await stand.assertExact()
    const servers = [spoke.kubeconfigPath, hubControlPlane.kubeconfigPath].map((path) => {
      const config = new KubeConfig()
      config.loadFromFile(path)
      return config.getCurrentCluster()?.server
    })
    assert.equal(new Set(servers).size, 2)
    const { client } = stand.hub
    assert.deepEqual(await client.list(kinds.node), [], 'the hub has no nodes')
  })

  const patience = { timeout: 2 * awayMs + 360_000 }
  test(
    'while the hub is away nothing is deleted, evicted or launched anew, and all goes on when it is back',
    patience,
    async () => {
      const atFirst = await everything()
      const startedAtMs = stand.hub.clock.now()
      line.set('refused')
      // They fit no node that is there.
      await stand.addPods('late', more, '7')
      for (const state of ['refused', 'silent'] as const) {
        line.set(state)
        await stand.hub.clock.sleep(awayMs)
        assert.deepEqual(await everything(), atFirst)
      }
      assert.deepEqual(podDeleters(dirname(spoke.kubeconfigPath), startedAtMs), [])
      stand.controller.assertRunning()
      line.set('open')
      // Pauses between two attempts have grown to a minute by then.
      await stand.hub.clock.sleep(isLong ? 90_000 : 0)
      await stand.untilRunning(podCount + more)
      await stand.assertExact()
    },
  )
})
