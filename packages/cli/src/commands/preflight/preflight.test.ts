import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { type ConfigMap, karpenterKinds, kinds, type ResourceType, testedMinors } from '@tenon/api'
import { identityAnnotation } from '@tenon/kube'
import { oneChunk, rfc3339, type Transport } from '@tenon/runtime'
import { leaderAnnotations } from '../../leader-annotations.ts'
import { deploymentKind } from '../../source/autoscalers.ts'
import { checks } from './run-checks.ts'
import { definitionKind } from './checks/crds.ts'
import {
  addNode,
  budget,
  clusterRoleKind,
  goodCluster,
  lease,
  managed,
  node,
  type RunOptions,
  type Stand,
  type StandOptions,
} from './preflight.test-support.ts'
import { render } from './render.ts'
import { type CheckResult, statusOf } from './check.ts'

/** A fault, how it is planted, and what is told. */
interface Fault {
  readonly name: string
  readonly stand?: StandOptions
  readonly plant?: (stand: Stand) => void
  readonly run?: RunOptions
  readonly check: string
  readonly status?: 'warn' | 'fail'
  readonly message: RegExp
  readonly fix: RegExp
}

const validating: ResourceType = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
}

function statusMap(written: string): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'cluster-autoscaler-status',
      namespace: 'kube-system',
      annotations: {
        'cluster-autoscaler.kubernetes.io/last-updated': written.replace(/T(.*)Z/, ' $1 +0000 UTC'),
      },
    },
  }
}

const deadWebhook = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'validation.webhook.karpenter.sh' },
  webhooks: [
    {
      name: 'validation.webhook.karpenter.sh',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Fail',
      clientConfig: { service: { namespace: 'karpenter', name: 'karpenter', path: '/' } },
      rules: [
        {
          apiGroups: ['karpenter.sh'],
          apiVersions: ['v1'],
          operations: ['CREATE', 'UPDATE'],
          resources: ['nodeclaims', 'nodeclaims/status'],
        },
      ],
    },
  ],
}

const deploymentOf = (name: string, image: string, args: readonly string[]) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'autoscaling' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name, image, command: args }] },
    },
  },
})

const aClaim = (name: string, kind: string) => ({
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name },
  spec: { nodeClassRef: { group: 'karpenter.exoscale.com', kind, name: 'default' }, requirements: [] },
})

function autoscaling({ api }: Stand): void {
  api.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'autoscaling' } })
}

const allButDelete = [
  'list-zones',
  'list-instance-types',
  'get-template',
  'get-active-nodepool-template',
  'list-security-groups',
  'get-security-group',
  'list-anti-affinity-groups',
  'get-anti-affinity-group',
  'list-private-networks',
  'get-private-network',
  'attach-instance-to-private-network',
  'list-instances',
  'get-instance',
  'create-instance',
  'update-instance',
  'get-operation',
  'get-quota',
]

const faults: readonly Fault[] = [
  {
    name: 'an old API server',
    stand: { gitVersion: 'v1.28.4' },
    check: 'server-version',
    message: /v1\.28\.4, which is older than v1\.33/,
    fix: /upgrade the control plane/,
  },
  {
    name: 'a clock that is behind',
    run: { skewMs: -90_000 },
    check: 'clock',
    message: /clock of the API server is 89 s behind/,
    fix: /NTP/,
  },
  {
    name: 'RPB-43 a lease of another cluster',
    plant: ({ api }) => {
      api.patch(kinds.lease, 'kube-system', 'karpenter-leader-election', {
        metadata: { annotations: { [identityAnnotation]: 'another' } },
      })
    },
    check: 'identity',
    message: /is that of cluster another, and this is cluster [-0-9a-f]{36}: the controller removes nothing/,
    fix: /--accept-cluster-identity/,
  },
  {
    name: 'a definition without a field',
    plant: ({ api }) => {
      const live = api.get(definitionKind, undefined, 'nodepools.karpenter.sh')
      const [version] = live?.spec?.versions ?? []
      const { properties = {} } = version?.schema?.openAPIV3Schema ?? {}
      const { nodes: _, ...kept } = properties['status']?.properties ?? {}
      const openAPIV3Schema = {
        ...version?.schema?.openAPIV3Schema,
        properties: { ...properties, status: { ...properties['status'], properties: kept } },
      }
      api.patch(definitionKind, undefined, 'nodepools.karpenter.sh', {
        spec: { versions: [{ ...version, schema: { openAPIV3Schema } }] },
      })
    },
    check: 'crds',
    message: /nodepools\.karpenter\.sh: lacks the fields status\.nodes$/,
    fix: /tenon crds apply/,
  },
  {
    name: 'a right that is missing',
    plant: ({ api }) => {
      const role = api.get(clusterRoleKind, undefined, 'core')
      if (role === undefined) throw new Error('there is a role')
      const rules = role.rules.map((rule) => ({
        ...rule,
        ...(rule.resources.includes('nodeclaims') && {
          verbs: rule.verbs.filter((verb) => verb !== 'delete' && verb !== 'create'),
        }),
      }))
      api.update(clusterRoleKind, { ...role, rules })
    },
    check: 'rights',
    message: /kube-system\/karpenter may not create, delete nodeclaims\.karpenter\.sh$/,
    fix: /additionalClusterRoleRules/,
  },
  {
    name: 'a wrong secret',
    run: { env: { EXOSCALE_API_SECRET: 'another' } },
    check: 'credentials',
    message: /not accepted: .*401/,
    fix: /EXOSCALE_API_KEY and EXOSCALE_API_SECRET belong together/,
  },
  {
    name: 'an operation that the role lacks',
    stand: { operations: allButDelete },
    check: 'cloud-rights',
    message: /may not delete-instance$/,
    fix: /allow delete-instance .* IAM role/,
  },
  {
    name: 'a host without an address',
    run: { resolveHost: (host) => Promise.reject(new Error(`getaddrinfo ENOTFOUND ${host}`)) },
    check: 'cloud-dns',
    message: /api-ch-gva-2\.exoscale\.com has no address: getaddrinfo ENOTFOUND/,
    fix: /CoreDNS/,
  },
  {
    name: 'a Tenon that stands back (ADO-6)',
    plant: (stand) => {
      const annotations = {
        [leaderAnnotations.leader]: 'somebody',
        [leaderAnnotations.standsBack]:
          'another controller serves the same NodePools: x wrote the status of y',
      }
      const at = ['kube-system', 'karpenter-leader-election'] as const
      stand.api.patch(kinds.lease, ...at, { metadata: { annotations } })
    },
    check: 'other-autoscalers',
    message: /^another controller serves the same NodePools: x wrote the status of y$/,
    fix: /--take-over/,
  },
  {
    name: 'a Karpenter that has written a minute ago, and may be stopped since (ADO-6)',
    plant: (stand) => {
      stand.karpenter.create(karpenterKinds.nodeClaim, aClaim('ours', 'ExoscaleNodeClass'))
      const status = { providerID: 'exoscale://1' }
      stand.karpenter.patch(karpenterKinds.nodeClaim, undefined, 'ours', { status }, 'status')
    },
    check: 'other-autoscalers',
    status: 'warn',
    message:
      /^karpenter wrote the status of NodeClaim ours at \S+; if it still runs, Tenon will only observe$/,
    fix: /--take-over/,
  },
  {
    name: 'a Karpenter that writes beside a Tenon that is told to observe (ADO-6)',
    plant: (stand) => {
      const annotations = { [leaderAnnotations.leader]: 'somebody', [leaderAnnotations.looksForOthers]: '' }
      stand.api.patch(kinds.lease, 'kube-system', 'karpenter-leader-election', { metadata: { annotations } })
      stand.karpenter.create(karpenterKinds.nodeClaim, aClaim('ours', 'ExoscaleNodeClass'))
      const status = { providerID: 'exoscale://1' }
      stand.karpenter.patch(karpenterKinds.nodeClaim, undefined, 'ours', { status }, 'status')
    },
    check: 'other-autoscalers',
    status: 'warn',
    message: /^karpenter wrote the status of NodeClaim ours at/,
    fix: /--take-over/,
  },
  {
    name: 'another Karpenter',
    plant: (stand) => {
      autoscaling(stand)
      stand.api.create(
        deploymentKind,
        deploymentOf('other', 'public.ecr.aws/karpenter/controller:1.8.0', ['karpenter-controller']),
      )
      stand.api.create(kinds.lease, lease('autoscaling', 'karpenter-leader-election', stand.clock))
    },
    check: 'other-autoscalers',
    message: /Deployment autoscaling\/other runs Karpenter on the same NodePools/,
    fix: /kubectl --namespace autoscaling scale deployment other --replicas=0/,
  },
  {
    name: 'a Cluster Autoscaler that is known by its status alone (ADO-9)',
    plant: ({ api, clock }) => api.create(kinds.configMap, statusMap(rfc3339(clock.now() - 20_000))),
    check: 'other-autoscalers',
    status: 'warn',
    message:
      /^ConfigMap kube-system\/cluster-autoscaler-status was written 20s ago by a Cluster Autoscaler, which launches nodes for the same pods$/,
    fix: /stop it where it runs, .*kubectl -n kube-system delete configmap cluster-autoscaler-status/,
  },
  {
    name: 'a webhook that nobody answers',
    plant: ({ api }) => api.create(validating, deadWebhook),
    check: 'webhooks',
    message:
      /validation\.webhook\.karpenter\.sh refuses writes of nodeclaims\.karpenter\.sh, nodeclaims\/status\.karpenter\.sh, for Service karpenter\/karpenter does not exist/,
    fix: /kubectl delete validatingwebhookconfiguration validation\.webhook\.karpenter\.sh/,
  },
  {
    name: 'no node outside of NodePools',
    plant: ({ api }) => {
      api.delete(kinds.node, undefined, 'system-1')
      addNode(api, node('managed-1', managed))
    },
    check: 'room',
    message: /no room for 1 pod of the controller: every node \(1\) is one of a NodePool/,
    fix: /outside of NodePools/,
  },
  {
    name: 'a budget that can never be met',
    plant: ({ api }) => {
      api.delete(kinds.podDisruptionBudget, 'default', 'web')
      api.create(kinds.podDisruptionBudget, budget('all', { minAvailable: '100%' }))
    },
    check: 'disruption-budgets',
    status: 'warn',
    message: /PodDisruptionBudget default\/all: spec\.minAvailable: 100% keeps all 2 pods/,
    fix: /maxUnavailable: 1/,
  },
]

async function stood(t: TestContext, options?: StandOptions): Promise<Stand> {
  const stand = await goodCluster(options)
  t.after(() => {
    stand.stop()
  })
  return stand
}

const notGood = (results: readonly CheckResult[]) => results.filter((result) => statusOf(result) !== 'ok')

test('EXP-26 preflight finds nothing in a good cluster, and changes nothing', async (t) => {
  const stand = await stood(t)
  const results = await stand.run()
  assert.deepEqual(notGood(results), [])
  assert.deepEqual(stand.writes, [])
  assert.equal(stand.instances(), 0)
  const page = readFileSync(join(import.meta.dirname, '../../../../../docs/ask/preflight.md'), 'utf8')
  const [, shown] = /^```text\n([\s\S]*?)^```/m.exec(page) ?? []
  assert.equal(render(results, 'text'), shown)
})

for (const fault of faults)
  test(`EXP-26 preflight finds ${fault.name}, and tells the fix`, async (t) => {
    const stand = await stood(t, fault.stand)
    fault.plant?.(stand)
    const results = await stand.run(fault.run)
    const found = notGood(results)
    const first = found.find(({ name }) => name === fault.check)
    assert.ok(first, render(results, 'text'))
    assert.equal(statusOf(first), fault.status ?? 'fail')
    assert.match(first.findings[0]?.message ?? '', fault.message)
    assert.match(first.findings[0]?.fix ?? '', fault.fix)
    // What follows from it is told as a warning.
    const others = found.filter((result) => result !== first && statusOf(result) === 'fail')
    assert.deepEqual(others, [])
    assert.equal(stand.instances(), 0)
  })

test('ADO-6 preflight does not mind a Karpenter of another cloud', async (t) => {
  const stand = await stood(t)
  stand.karpenter.create(karpenterKinds.nodeClaim, aClaim('theirs', 'EC2NodeClass'))
  const status = { providerID: 'aws:///1' }
  stand.karpenter.patch(karpenterKinds.nodeClaim, undefined, 'theirs', { status }, 'status')
  const found = (await stand.run()).find(({ name }) => name === 'other-autoscalers')
  assert.deepEqual(found?.findings, [])
})

test('SCA-15 preflight names a NodePool that no controller or two select', async (t) => {
  const stand = await stood(t)
  autoscaling(stand)
  for (const [name, selector] of [
    ['one', 'team=a'],
    ['two', 'team in (a,b)'],
  ] as const) {
    const command = ['controller', '--provider=exoscale', `--node-pools=${selector}`]
    stand.api.create(deploymentKind, deploymentOf(name, 'registry.test/tenon:1', command))
  }
  for (const team of ['a', 'b', 'c'])
    stand.api.create(karpenterKinds.nodePool, {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: `of-${team}`, labels: { team } },
      spec: {
        template: {
          spec: {
            nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'default' },
            requirements: [],
          },
        },
      },
    })
  const found = (await stand.run()).find(({ name }) => name === 'node-pools')
  assert.deepEqual(
    found?.findings.map(({ message }) => message),
    [
      'NodePool of-a: its labels match the selectors (--node-pools) of autoscaling/one, autoscaling/two: the first that takes it serves it',
      'NodePool of-c: its labels match no selector (--node-pools) of autoscaling/one, autoscaling/two: no controller launches nodes for it',
    ],
  )
})

test('EXP-26 every verb that is missing is named, for each resource', async (t) => {
  const stand = await stood(t)
  stand.api.delete(clusterRoleKind, undefined, 'core')
  const results = await stand.run()
  const [message = ''] =
    results.find(({ name }) => name === 'rights')?.findings.map((each) => each.message) ?? []
  assert.match(message, /get, list, watch, create, patch, delete nodeclaims\.karpenter\.sh;/)
  assert.match(message, /create pods\/eviction/)
  assert.match(message, /patch exoscalenodeclasses\.karpenter\.exoscale\.com\/status/)
})

test('VER-1 the tested minors are ok, a newer one warns, an older one fails', async (t) => {
  const { oldest, newest } = testedMinors
  const statusOn = async (minor: number) => {
    const results = await (await stood(t, { gitVersion: `v1.${minor}.1` })).run()
    return results.flatMap((result) => (result.name === 'server-version' ? statusOf(result) : []))
  }
  for (const [minor, status] of [
    [oldest - 1, 'fail'],
    [oldest, 'ok'],
    [newest, 'ok'],
    [newest + 1, 'warn'],
  ] as const)
    assert.deepEqual(await statusOn(minor), [status], `1.${minor}`)
})

test('the page names every check', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../../docs/ask/preflight.md'), 'utf8')
  // Those of the other mode have a section of their own.
  const [nodePools = ''] = page.split('\n## Node groups\n')
  const named = [...nodePools.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name)
  assert.deepEqual(
    named,
    checks.map(({ name }) => name),
  )
})

test('EXP-26 each form of output has every check, and a failed one its fix', async (t) => {
  const stand = await stood(t)
  const results = await stand.run({ skewMs: 90_000, env: { EXOSCALE_API_KEY: '' } })
  const json = JSON.parse(render(results, 'json')) as {
    readonly kind: string
    readonly status: string
    readonly checks: readonly {
      readonly name: string
      readonly status: string
      readonly findings: object[]
    }[]
  }
  assert.deepEqual([json.kind, json.status, json.checks.length], ['PreflightReport', 'fail', results.length])
  const clock = json.checks.find(({ name }) => name === 'clock')
  assert.deepEqual(clock, {
    name: 'clock',
    status: 'fail',
    findings: [
      {
        status: 'fail',
        message: 'the clock of the API server is 90 s ahead of the one of this computer',
        fix: 'set the clocks by NTP (chrony or systemd-timesyncd), on the control plane and here',
      },
    ],
    durationMs: 0,
  })
  const junit = render(results, 'junit')
  assert.match(junit, /tests="14" failures="2"/)
  assert.match(
    junit,
    /<failure message="the clock of the API server[^>]*>fail: .* Fix: set the clocks by NTP/,
  )
  for (const line of render(results, 'text').trimEnd().split('\n')) assert.match(line, /^(ok|warn|fail) /)
})

const nonsense: readonly (readonly [name: string, through: (server: Transport) => Transport])[] = [
  ['pages of a proxy', () => answering(200, '<html>welcome</html>')],
  ['an empty object', () => answering(200, '{}')],
  [
    'lists of nothing',
    () => answering(200, '{"kind":"List","metadata":{"resourceVersion":"1"},"items":[null]}'),
  ],
  ['errors', () => answering(500, 'boom')],
  ['a broken connection', () => ({ send: () => Promise.reject(new Error('socket hang up')) })],
]

function answering(status: number, text: string): Transport {
  return {
    send: () =>
      Promise.resolve({ status, headers: { 'content-type': 'application/json' }, body: oneChunk(text) }),
  }
}

for (const [name, through] of nonsense)
  test(`a server that answers ${name} fails checks and breaks nothing`, async (t) => {
    const stand = await stood(t)
    const results = await stand.run({ through })
    const failed = new Set(
      results.filter((result) => statusOf(result) === 'fail').map((result) => result.name),
    )
    for (const check of ['server-version', 'crds', 'rights', 'other-autoscalers', 'webhooks', 'room'])
      assert.ok(failed.has(check), `${check}: ${render(results, 'text')}`)
  })

test('a server that answers nothing fails each check at its time limit', async (t) => {
  const stand = await stood(t)
  const running = stand.run({
    through: () => ({ send: () => new Promise(() => undefined) }),
    settings: { limitMs: 3_000 },
  })
  await stand.clock.advance(3_000)
  await stand.clock.advance(3_000)
  const results = await running
  const rights = results.find(({ name }) => name === 'rights')
  assert.match(rights?.findings[0]?.message ?? '', /^no answer within 3 s$/)
  assert.equal(rights?.durationMs, 3_000)
})

test('rights that come with a setting are asked for when the running controller has it', async (t) => {
  const stand = await stood(t)
  const [container] =
    stand.api.get(deploymentKind, 'kube-system', 'karpenter')?.spec?.template?.spec?.containers ?? []
  const findingOf = async (gate: string) => {
    const env = [{ name: 'FEATURE_GATES', value: `CapacityBuffer=false,PlannedPlacement=false,${gate}` }]
    stand.api.patch(deploymentKind, 'kube-system', 'karpenter', {
      spec: { template: { spec: { containers: [{ ...container, env }] } } },
    })
    return (await stand.run()).find(({ name }) => name === 'rights')?.findings[0]?.message
  }
  stand.api.patch(clusterRoleKind, undefined, 'groups', { rules: [] })
  assert.match((await findingOf('GroupScheduling=true')) ?? '', /list, watch podgroups\.scheduling/)
  assert.equal(await findingOf('GroupScheduling=false'), undefined)
})

test('without credentials the cloud is not asked, and the missing variable is named', async (t) => {
  const stand = await stood(t)
  const results = await stand.run({ env: { EXOSCALE_API_KEY: '' } })
  const credentials = results.find(({ name }) => name === 'credentials')
  assert.equal(credentials?.findings[0]?.status, 'fail')
  assert.match(credentials.findings[0].message, /^EXOSCALE_API_KEY is not set/)
})

test('a controller outside the cluster is known by its lease', async (t) => {
  const stand = await stood(t)
  autoscaling(stand)
  stand.api.create(kinds.lease, lease('autoscaling', 'karpenter-leader-election', stand.clock))
  stand.api.create(kinds.lease, lease('autoscaling', 'cluster-autoscaler', stand.clock))
  const [found] = notGood(await stand.run())
  assert.deepEqual(
    found?.findings.map(({ status, message }) => [status, message.split(':')[0]]),
    [
      ['warn', 'lease autoscaling/cluster-autoscaler is held by somebody'],
      ['fail', 'lease autoscaling/karpenter-leader-election is held by somebody'],
    ],
  )
  // A lease that nobody renews is left over.
  await stand.clock.advance(60_000)
  const later = (await stand.run()).find(({ name }) => name === 'other-autoscalers')
  assert.deepEqual(later?.findings, [])
})

test('Cluster Autoscaler beside Tenon is a warning with the command that stops it', async (t) => {
  const stand = await stood(t)
  autoscaling(stand)
  const command = ['./cluster-autoscaler', '--nodes=1:5:workers']
  stand.api.create(
    deploymentKind,
    deploymentOf('ca', 'registry.k8s.io/autoscaling/cluster-autoscaler:v1.35.0', command),
  )
  const found = notGood(await stand.run())
  assert.deepEqual(
    found.map(({ name, findings }) => [name, findings.map(({ status, fix }) => [status, fix])]),
    [
      [
        'other-autoscalers',
        [
          [
            'warn',
            'keep their pods apart (docs/cluster-autoscaler/to-nodepools.md), or stop it: kubectl --namespace autoscaling scale deployment ca --replicas=0',
          ],
        ],
      ],
    ],
  )
})

test('a definition that is not installed, or not in the version of this release, is a failure', async (t) => {
  const stand = await stood(t)
  stand.api.delete(definitionKind, undefined, 'nodeoverlays.karpenter.sh')
  const live = stand.api.get(definitionKind, undefined, 'nodeclaims.karpenter.sh')
  stand.api.patch(definitionKind, undefined, 'nodeclaims.karpenter.sh', {
    spec: { versions: [{ ...live?.spec?.versions?.[0], served: false }] },
  })
  const crds = (await stand.run()).find(({ name }) => name === 'crds')
  assert.deepEqual(
    crds?.findings.map(({ message }) => message),
    ['missing: nodeoverlays.karpenter.sh', 'nodeclaims.karpenter.sh: version v1 is not served'],
  )
  assert.equal(karpenterKinds.nodeClaim.version, 'v1')
})
