/** What `tenon preflight` finds out about a management cluster, and what `tenon init` writes of it. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { kinds } from '@tenon/api'
import type { AccessRight } from '@tenon/kube'
import { isProviderSettingError, type PreflightFinding } from '@tenon/provider'
import { fixedNames } from '../names.ts'
import { aNode, cpuAndMemory, GroupsStage, names, type StageOptions } from './groups-stage.test-support.ts'
import { nodeGroupModule } from './open.ts'

async function aStage(t: TestContext, options: StageOptions = {}) {
  const stage = await GroupsStage.create(options)
  t.after(() => {
    stage.stop()
  })
  return stage
}

/** Runs a check. Nothing may be written. */
async function check(
  stage: GroupsStage,
  name: 'cluster-api' | 'management-rights' | 'node-groups',
  isAllowed?: (right: AccessRight) => boolean,
) {
  const { checks } = nodeGroupModule.preflight(stage.looking(isAllowed))
  const found = checks.find((each) => each.name === name)
  assert.ok(found)
  const outcome = await stage.run(found.run(stage.signal))
  assert.deepEqual(stage.writes(), [])
  return outcome
}

/** The one finding about an object. */
function about(findings: readonly PreflightFinding[], id: string): PreflightFinding {
  const found = findings.filter(({ message }) => message.startsWith(`${id}: `))
  assert.equal(found.length, 1, JSON.stringify(findings, null, 2))
  return found[0] as PreflightFinding
}

const md = (name: string, namespace = 'a') => `MachineDeployment/${namespace}/${name}`

describe('preflight of node groups', () => {
  test('CAG-14 good groups have no finding, and are told with their bounds', async (t) => {
    const stage = await aStage(t)
    stage.put('one', { max: '5', replicas: 1, annotations: cpuAndMemory })
    stage.put('two', { min: '2', max: '2', replicas: 2, kind: 'MachineSet' })
    stage.put('none', { replicas: 1 })
    assert.deepEqual(await check(stage, 'node-groups'), {
      summary: `2 node groups: ${md('one')} (0 to 5), MachineSet/a/two (2 to 2)`,
      findings: [],
    })
  })

  test('CAG-15 each malformed annotation fails and names object, annotation and fix', async (t) => {
    const stage = await aStage(t)
    stage.put('word', { min: 'x', max: '3', replicas: 1 })
    stage.put('negative', { max: '-1', replicas: 1 })
    stage.put('crossed', { min: '5', max: '3', replicas: 3 })
    stage.put('lone', { min: '2', replicas: 2 })
    const { findings } = await check(stage, 'node-groups')
    for (const [name, message, fix] of [
      ['word', `annotation ${names.minSize} is "x"`, 'write one such as 3'],
      ['negative', `annotation ${names.maxSize} is "-1"`, 'write one such as 3'],
      ['crossed', `annotation ${names.maxSize} is "3", less than "5"`, 'raise it'],
      ['lone', `annotation ${names.maxSize} is missing`, 'set it'],
    ] as const) {
      const found = about(findings, md(name))
      assert.equal(found.status, 'fail')
      assert.ok(found.message.includes(message), found.message)
      assert.equal(found.fix, fix)
    }
    assert.equal(findings.length, 4)
  })

  test('CAG-19 CAG-20 replicas that are unset or out of bounds are told with the command', async (t) => {
    const stage = await aStage(t)
    stage.put('unset', { min: '2', max: '5', annotations: cpuAndMemory })
    stage.put('above', { min: '1', max: '8', replicas: 10 })
    stage.put('below', { min: '5', max: '8', replicas: 1 })
    const { findings } = await check(stage, 'node-groups')
    assert.deepEqual(about(findings, md('unset')), {
      status: 'fail',
      message: `${md('unset')}: spec.replicas is not set, so that nothing is written`,
      fix: 'kubectl --namespace a scale machinedeployment unset --replicas=2',
    })
    const above = about(findings, md('above'))
    assert.equal(above.status, 'warn')
    assert.match(above.message, /spec\.replicas is 10, more than 8 of annotation .*max-size/)
    assert.match(
      above.fix,
      /^kubectl --namespace a annotate machinedeployment above --overwrite .*max-size=10/,
    )
    const below = about(findings, md('below'))
    assert.equal(below.status, 'warn')
    assert.match(below.message, /spec\.replicas is 1, less than 5 of annotation .*min-size/)
    assert.match(below.fix, /--replicas=5, or run the autoscaler with --enforce-node-group-min-size/)
  })

  test('CAG-54 a pause by annotation, by the spec or of the Cluster is a warning', async (t) => {
    const stage = await aStage(t)
    const capable = { max: '3', replicas: 1, annotations: cpuAndMemory }
    stage.put('noted', { ...capable, annotations: { ...cpuAndMemory, [fixedNames.paused]: '' } })
    stage.put('spec', { ...capable, spec: { paused: true } })
    stage.put('cluster', { ...capable, cluster: 'c2' })
    stage.api.create(stage.kinds.cluster, {
      apiVersion: `${stage.kinds.cluster.group}/v1beta2`,
      kind: 'Cluster',
      metadata: { name: 'c2', namespace: 'a' },
      spec: { paused: true },
    })
    const { findings } = await check(stage, 'node-groups')
    assert.match(about(findings, md('noted')).message, /paused by annotation cluster\.x-k8s\.io\/paused/)
    assert.match(about(findings, md('spec')).message, /paused by spec\.paused/)
    assert.match(about(findings, md('cluster')).message, /its Cluster a\/c2 is paused by spec\.paused/)
    for (const name of ['noted', 'spec', 'cluster']) assert.equal(about(findings, md(name)).status, 'warn')
  })

  test('CAG-17 CAG-18 without known capacity a group at 0 fails, and one that may get there is warned about', async (t) => {
    const stage = await aStage(t)
    stage.put('empty', { max: '3', replicas: 0 })
    stage.put('full', { max: '3', replicas: 2 })
    stage.put('kept', { min: '1', max: '3', replicas: 2 })
    const { findings } = await check(stage, 'node-groups')
    const empty = about(findings, md('empty'))
    assert.equal(empty.status, 'fail')
    assert.match(empty.message, /it has no replicas, and cannot grow while nobody knows what its nodes have/)
    assert.match(empty.fix, /annotate machinedeployment empty --overwrite capacity\.[^ ]+\/cpu=CPUS capacity/)
    assert.equal(about(findings, md('full')).status, 'warn')
    assert.equal(findings.length, 2)
  })

  test('CAG-45 CAG-46 CAG-52 a capacity, template or option that cannot be read is told by name', async (t) => {
    const stage = await aStage(t)
    stage.put('pods', {
      max: '3',
      replicas: 0,
      annotations: { ...cpuAndMemory, 'capacity.cluster-autoscaler.kubernetes.io/maxPods': '1k' },
    })
    stage.put('template', {
      max: '3',
      replicas: 0,
      spec: {
        template: {
          spec: {
            infrastructureRef: {
              apiGroup: 'infrastructure.cluster.x-k8s.io',
              kind: 'OddTemplate',
              name: 'x',
            },
          },
        },
      },
    })
    stage.put('option', {
      max: '3',
      replicas: 1,
      annotations: { ...cpuAndMemory, 'cluster.x-k8s.io/autoscaling-options-scaledownunneededtime': '1x' },
    })
    const { findings } = await check(stage, 'node-groups')
    assert.match(about(findings, md('pods')).message, /maxPods is "1k", which is not an integer/)
    assert.match(about(findings, md('template')).message, /OddTemplate a\/x cannot be read/)
    const option = about(findings, md('option'))
    assert.deepEqual([option.status, option.fix], ['warn', 'write a duration such as 10m'])
    assert.match(option.message, /scaledownunneededtime is "1x" and is ignored/)
  })

  test('CAG-5 no group at all, and a spec that selects nothing, fail', async (t) => {
    const bare = await aStage(t)
    assert.match(
      (await check(bare, 'node-groups')).findings[0]?.message ?? '',
      /^there is no MachineDeployment, MachineSet or MachinePool in https:\/\/hub\.example$/,
    )
    const unmarked = await aStage(t)
    unmarked.put('one', { replicas: 1 })
    const [first] = (await check(unmarked, 'node-groups')).findings
    assert.match(
      first?.message ?? '',
      /no object is a node group: none of 1 has annotation .*max-size above 0/,
    )
    assert.match(
      first?.fix ?? '',
      /^kubectl --namespace a annotate machinedeployment one .*min-size=MIN .*max-size=MAX$/,
    )
    const elsewhere = await aStage(t, { specs: ['clusterapi:namespace=a', 'clusterapi:namespace=b,x=y'] })
    elsewhere.put('one', { max: '2', replicas: 1, annotations: cpuAndMemory })
    const { findings } = await check(elsewhere, 'node-groups')
    assert.equal(findings.length, 1)
    assert.match(
      findings[0]?.message ?? '',
      /auto-discovery=clusterapi:namespace=b,x=y selects no MachineDeployment/,
    )
  })

  test('CAG-9 groups of other Clusters than that of the Nodes fail, and several Clusters are warned about', async (t) => {
    const stage = await aStage(t)
    const capable = { max: '3', replicas: 1, annotations: cpuAndMemory }
    stage.put('mine', { ...capable, cluster: 'c1' })
    stage.put('theirs', { ...capable, cluster: 'c2' })
    const [several] = (await check(stage, 'node-groups')).findings
    assert.equal(several?.status, 'warn')
    assert.match(several?.message ?? '', /^Clusters a\/c1 and a\/c2 have node groups, and no Node tells/)
    stage.api.create(kinds.node, aNode('n1', { cluster: 'c3' }))
    const [wrong] = (await check(stage, 'node-groups')).findings
    assert.equal(wrong?.status, 'fail')
    assert.match(
      wrong?.message ?? '',
      /^the Nodes are of Cluster a\/c3, and the node groups .* of a\/c1, a\/c2$/,
    )
    stage.api.create(kinds.node, aNode('n2', { cluster: 'c1' }))
    assert.deepEqual((await check(stage, 'node-groups')).findings, [])
  })

  test('what cannot be listed is unknown, and never counts as fine', async (t) => {
    const stage = await aStage(t)
    stage.put('one', { max: '2', replicas: 1, annotations: cpuAndMemory })
    stage.fault = ({ path }) =>
      path.includes('machinedeployments') || path.startsWith('/api/v1/nodes') ? 403 : undefined
    const { findings } = await check(stage, 'node-groups')
    assert.deepEqual(
      findings.map(({ status }) => status),
      ['fail', 'fail'],
    )
    assert.match(
      findings[0]?.message ?? '',
      /^machinedeployments\.cluster\.x-k8s\.io cannot be read, so that/,
    )
    assert.match(findings[1]?.message ?? '', /^which Cluster the Nodes are of is unknown/)
  })
})

describe('preflight of the management cluster', () => {
  test('CAG-11 the version in use is told, and an unserved one fails', async (t) => {
    const both = await aStage(t, { versions: ['v1beta2', 'v1beta1'] })
    const { summary, findings } = await check(both, 'cluster-api')
    assert.equal(summary, 'https://hub.example serves cluster.x-k8s.io/v1beta2')
    assert.deepEqual(findings, [])
    const old = await aStage(t, { env: { CAPI_VERSION: 'v1beta1' } })
    const [missing] = (await check(old, 'cluster-api')).findings
    assert.equal(missing?.status, 'fail')
    assert.match(missing?.message ?? '', /serves v1beta2, not cluster\.x-k8s\.io\/v1beta1/)
    for (const name of ['management-rights', 'node-groups'] as const)
      assert.deepEqual(
        (await check(old, name)).findings.map(({ status }) => status),
        ['fail'],
      )
    const wrong = await aStage(t)
    const looking = { ...wrong.looking(), env: { CAPI_VERSION: 'v2' } }
    assert.throws(() => nodeGroupModule.preflight(looking), isProviderSettingError)
  })

  test('CAG-12 MachinePools that are not served need no right', async (t) => {
    const stage = await aStage(t, { notServed: ['machinepools'] })
    const asked = new Set<string>()
    const outcome = await check(stage, 'management-rights', ({ resource }) => {
      asked.add(resource)
      return true
    })
    assert.deepEqual(outcome.findings, [])
    assert.deepEqual([...asked].toSorted(), ['clusters', 'machinedeployments', 'machines', 'machinesets'])
    assert.match((await check(stage, 'cluster-api')).summary, /, without machinepools$/)
  })

  test('CAG-31 CAG-40 any allowed form of a write is enough, and what is missing says what fails', async (t) => {
    const stage = await aStage(t)
    const updates = ({ verb, subresource }: AccessRight) => verb !== 'patch' && subresource === undefined
    assert.deepEqual((await check(stage, 'management-rights', updates)).findings, [])
    const reads = ({ verb }: AccessRight) => ['get', 'list', 'watch'].includes(verb)
    const { findings } = await check(stage, 'management-rights', reads)
    assert.deepEqual(
      findings.map(({ status, message }) => `${status} ${message}`),
      [
        'fail the autoscaler may not patch machines.cluster.x-k8s.io: no node is removed',
        'fail the autoscaler may not patch machinedeployments.cluster.x-k8s.io/scale: MachineDeployments are not scaled',
        'warn the autoscaler may not patch machinesets.cluster.x-k8s.io/scale: MachineSets without a MachineDeployment are not scaled',
        'warn the autoscaler may not patch machinepools.cluster.x-k8s.io/scale: MachinePools are not scaled',
      ],
    )
    assert.match(
      findings[0]?.fix ?? '',
      /^grant patch machines\.cluster\.x-k8s\.io in https:\/\/hub\.example/,
    )
  })

  test('CAG-58 rights are asked for in the namespaces of auto-discovery alone', async (t) => {
    const stage = await aStage(t, { specs: ['clusterapi:namespace=a', 'clusterapi:namespace=b'] })
    const namespaces = new Set<string | undefined>()
    const { findings } = await check(stage, 'management-rights', ({ namespace, verb, resource }) => {
      namespaces.add(namespace)
      return !(namespace === 'b' && verb === 'watch' && resource === 'machines')
    })
    assert.deepEqual([...namespaces], ['a', 'b'])
    assert.deepEqual(
      findings.map(({ message }) => message),
      ['the autoscaler may not watch machines.cluster.x-k8s.io in b: nothing is scaled'],
    )
    assert.deepEqual(
      stage.requests.filter(
        (each) => /machine(deployment|set|pool)?s/.test(each) && !each.includes('/namespaces/'),
      ),
      [],
    )
  })

  test('a right that cannot be asked for is unknown, and fails', async (t) => {
    const stage = await aStage(t)
    const { findings } = await check(stage, 'management-rights', () => {
      throw new Error('no answer')
    })
    assert.deepEqual(
      findings.map(({ status }) => status),
      ['fail'],
    )
    assert.match(
      findings[0]?.message ?? '',
      /^whether the autoscaler may get machines.* is unknown: no answer$/,
    )
  })
})

describe('values of the chart', () => {
  const values = async (
    stage: GroupsStage,
    nodes = [] as Parameters<typeof nodeGroupModule.chartValues>[1],
  ) => await stage.run(nodeGroupModule.chartValues(stage.looking(), nodes, stage.signal))

  test('one Cluster is named with its namespace, and each object is told', async (t) => {
    const stage = await aStage(t)
    stage.put('one', { max: '5', replicas: 1 })
    stage.put('wrong', { max: 'x', replicas: 1 })
    stage.put('none', { replicas: 1 })
    const { values: written, remarks } = await values(stage)
    assert.deepEqual(written, { autoDiscovery: { clusterName: 'c1', namespace: 'a' } })
    assert.equal(remarks.length, 3)
    assert.match(remarks[0] ?? '', /^Scaled: MachineDeployment\/a\/one, 0 to 5 nodes\.$/)
    assert.match(remarks[1] ?? '', /^Left out: MachineDeployment\/a\/wrong: annotation .* is "x"/)
    assert.match(remarks[2] ?? '', /^Not scaled: MachineDeployment\/a\/none, which gets bounds with kubectl/)
  })

  test('of several Clusters the Nodes choose; without them nothing is guessed', async (t) => {
    const stage = await aStage(t)
    stage.put('mine', { max: '5', replicas: 1, cluster: 'c1', namespace: 'a' })
    stage.put('theirs', { max: '5', replicas: 1, cluster: 'c2', namespace: 'b' })
    const unsure = await values(stage)
    assert.equal(unsure.values, undefined)
    assert.match(
      unsure.remarks.at(-1) ?? '',
      /^Name one of the Clusters c1, c2 with --node-group-auto-discovery/,
    )
    const sure = await values(stage, [aNode('n1', { cluster: 'c2', namespace: 'b' })])
    assert.deepEqual(sure.values, { autoDiscovery: { clusterName: 'c2', namespace: 'b' } })
  })
})
