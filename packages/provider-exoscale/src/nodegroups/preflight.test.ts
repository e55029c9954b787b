/** What `tenon preflight` and `tenon init` find out about the node groups of a zone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type Node } from '@tenon/api'
import { createTestApiServer } from '@tenon/devcluster/test-api'
import { createKubeClient } from '@tenon/kube'
import { isProviderSettingError, type NodeGroupPreflightDependencies } from '@tenon/provider'
import { SeededRandom, silentLogger } from '@tenon/runtime'
import {
  aNode,
  aStage,
  batchPoolId,
  scalerKey,
  sksRole,
  type Stage,
  type StageOptions,
} from './node-groups.test-support.ts'
import { nodeGroupModuleOver } from './open.ts'

const env = {
  EXOSCALE_ZONE: 'ch-gva-2',
  EXOSCALE_API_KEY: scalerKey.key,
  EXOSCALE_API_SECRET: scalerKey.secret.reveal(),
}

function looking(
  stage: Stage,
  nodes: readonly Node[],
  { specs = [], allowsEmptyGroups = false }: StageOptions,
): NodeGroupPreflightDependencies {
  const { clock } = stage.world
  const server = createTestApiServer({ clock })
  for (const node of nodes) server.localAs('kubectl').create(kinds.node, node)
  const headers = { authorization: 'Bearer admin' }
  const client = createKubeClient({
    transport: {
      send: (request, signal) =>
        server.handle({ ...request, headers: { ...request.headers, ...headers } }, signal),
    },
    clock,
  })
  const cluster = {
    client,
    server: 'https://sks.example',
    who: 'you',
    isAllowed: () => Promise.resolve(true),
  }
  return {
    env,
    clusters: { workload: cluster, management: cluster },
    discoverySpecs: [],
    nodeGroupSpecs: specs,
    allowsEmptyGroups,
    runtime: { clock, random: new SeededRandom(1), logger: silentLogger },
    userAgent: 'test',
  }
}

/** The zone, its nodes, and the preflight of both. */
function aPreflight(options: StageOptions = {}) {
  const stage = aStage(options)
  const nodes = [...stage.nodesOf(batchPoolId), ...stage.nodesOf(stage.workersId)]
  const module = nodeGroupModuleOver(() => ({ send: (request) => stage.world.cloud.handle(request) }))
  const run = async (among: readonly Node[] = nodes) => {
    const { checks } = module.preflight(looking(stage, among, options))
    const [check] = checks
    assert.deepEqual([checks.length, check?.name], [1, 'node-groups'])
    return await stage.settle((check as (typeof checks)[number]).run(stage.signal))
  }
  return { stage, nodes, module, run }
}

test('the groups of all nodes are told with their bounds', async () => {
  const { run } = aPreflight({ specs: ['1:5:workers'] })
  const { summary, findings } = await run()
  assert.match(summary, /^2 node groups: .*workers \(1 to 5\)/)
  assert.deepEqual(findings, [])
})

test('a malformed --nodes, one for no group, and a size out of bounds are told', async () => {
  const { run } = aPreflight({ specs: ['1:x:batch', '1:5:nowhere', '3:5:workers'] })
  const { findings } = await run()
  const texts = findings.map(({ status, message }) => `${status} ${message}`)
  assert.ok(
    texts.some((text) => text.startsWith('fail --nodes=1:x:batch: the maximum "x" is no integer')),
    texts.join('\n'),
  )
  assert.ok(texts.some((text) => text.startsWith('warn --nodes names nowhere, and no Node is in a group')))
  assert.ok(texts.some((text) => text.startsWith('warn node group workers has size 2, outside of 3 to 5')))
})

test('without a node in a group the check fails', async () => {
  const { run } = aPreflight()
  const { findings } = await run([aNode('other', 'aws:///z/i-1')])
  assert.deepEqual(
    findings.map(({ status, message }) => [status, message]),
    [['fail', 'no Node of the cluster is in an SKS nodepool or an Instance Pool']],
  )
})

test('a pool that may not be read is unknown, and fails', async () => {
  const { run } = aPreflight({ operations: ['get-instance'] })
  const { findings } = await run()
  assert.ok(findings.length > 0)
  for (const { status } of findings) assert.equal(status, 'fail')
  assert.match(findings[0]?.message ?? '', /get-instance-pool/)
})

test('each operation of both IAM roles is tried, and those of the other role are optional', async () => {
  const { stage, module } = aPreflight({ operations: sksRole })
  const { access } = module.preflight(looking(stage, [], {}))
  const before = stage.world.cloud.instances().length
  const refused: string[] = []
  for (const operation of access?.operations ?? []) {
    const { name, optional } = operation
    const answer = await stage.settle(operation.attempt(stage.signal))
    if (answer.kind === 'allowed') continue
    assert.equal(answer.kind, 'refused', `${name}: ${JSON.stringify(answer)}`)
    assert.ok(optional !== undefined)
    refused.push(name)
  }
  assert.deepEqual(refused, ['scale-instance-pool', 'evict-instance-pool-members'])
  assert.equal(stage.world.cloud.instances().length, before)
  assert.deepEqual(access?.hosts, ['api-ch-gva-2.exoscale.com'])
  assert.throws(() => module.preflight({ ...looking(stage, [], {}), env: {} }), isProviderSettingError)
})

test('the values of the chart have all groups, with bounds of --nodes', async () => {
  const options = { specs: ['2:7:workers'] }
  const { stage, nodes, module } = aPreflight(options)
  const { values, remarks } = await stage.settle(
    module.chartValues(looking(stage, nodes, options), nodes, stage.signal),
  )
  assert.deepEqual(values, {
    autoscalingGroups: [
      { name: 'workers', minSize: 2, maxSize: 7 },
      { name: 'batch', minSize: 1, maxSize: 10 },
    ],
    secretKeyRefNameOverride: 'exoscale-api-credentials',
  })
  assert.match(remarks[0] ?? '', /^No --nodes gives bounds to batch/)
})
