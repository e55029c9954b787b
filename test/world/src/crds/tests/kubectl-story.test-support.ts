/** What kubectl does with Tenon's CRDs and objects; the same on any API server. */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { publicExamplesStream } from './public-examples.test-support.ts'
import { aCapacityBuffer, aNodeOverlay, aNodePool, poolOf } from './manifests.test-support.ts'

/** Runs kubectl to its end; `input` goes to its standard input. */
export type Kubectl = (args: readonly string[], input?: string) => Promise<KubectlOutcome>

interface KubectlOutcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs kubectl with words split at blanks, expects success and returns what it printed. */
async function ok(kubectl: Kubectl, words: string, input?: object | string): Promise<string> {
  const { code, out, err } = await run(kubectl, words, input)
  assert.equal(code, 0, `kubectl ${words}: ${err}${out}`)
  return out
}

function run(kubectl: Kubectl, words: string, input?: object | string): Promise<KubectlOutcome> {
  return kubectl(words.split(' '), typeof input === 'object' ? JSON.stringify(input) : input)
}

const lines = (text: string): string[] => text.trim().split('\n')

async function versions(kubectl: Kubectl, crds: string): Promise<string> {
  const names = 'jsonpath={.items[*].metadata.resourceVersion},{.items[*].metadata.generation}'
  return ok(kubectl, `get -f - -o ${names}`, crds)
}

/** `tenon crds | kubectl apply -f -`, on the server's side and the client's, each twice. */
export async function appliesTwice(kubectl: Kubectl, crds: string): Promise<void> {
  const count = (await ok(kubectl, 'apply --server-side -f -', crds)).match(/serverside-applied/g)?.length
  const first = await versions(kubectl, crds)
  await ok(kubectl, 'apply --server-side -f -', crds)
  assert.equal(await versions(kubectl, crds), first, 'a second server-side apply changed something')

  await ok(kubectl, 'apply -f -', crds)
  const again = lines(await ok(kubectl, 'apply -f -', crds))
  assert.deepEqual(
    again.filter((line) => !line.endsWith(' unchanged')),
    [],
  )
  assert.equal(again.length, count)
  assert.equal((await run(kubectl, 'diff -f -', crds)).code, 0, 'diff finds a difference')
  await ok(kubectl, 'wait --for=condition=Established --timeout=20s -f -', crds)
}

const condition = (type: string) => ({
  type,
  status: 'True',
  reason: type,
  message: '',
  lastTransitionTime: '2026-11-21T05:00:00Z',
})

function named(manifest: ReturnType<typeof aNodePool>, name: string): object {
  return { ...manifest, metadata: { name } }
}

async function showsNodePools(kubectl: Kubectl): Promise<void> {
  await ok(kubectl, 'create -f -', named(aNodePool({ weight: 10 }), 'columns'))
  const status = { nodes: 2, resources: { cpu: '8', memory: '32Gi' }, conditions: [condition('Ready')] }
  await ok(
    kubectl,
    `patch nodepool columns --subresource=status --type=merge -p ${JSON.stringify({ status })}`,
  )
  assert.match(
    await ok(kubectl, 'get nodepools columns'),
    /^NAME +NODECLASS +NODES +READY +AGE\ncolumns +standard +2 +True +\d+s\n$/,
  )
  assert.match(
    await ok(kubectl, 'get nodepool columns -o wide'),
    /AGE +WEIGHT +CPU +MEMORY\ncolumns +standard +2 +True +\d+s +10 +8 +32Gi\n$/,
  )
  await ok(kubectl, 'delete nodepool columns')
}

async function showsNodeClaims(kubectl: Kubectl): Promise<void> {
  const labels = {
    'node.kubernetes.io/instance-type': 'standard.medium',
    'karpenter.sh/capacity-type': 'on-demand',
    'topology.kubernetes.io/zone': 'ch-gva-2',
    'karpenter.sh/nodepool': 'pool-a',
  }
  const claim = { ...poolOf({}), kind: 'NodeClaim', metadata: { name: 'columns', labels } }
  const { spec } = (claim as typeof claim & { spec: { template: { spec: object } } }).spec.template
  await ok(kubectl, 'create -f -', { ...claim, spec })
  const status = {
    nodeName: 'node-a',
    imageID: 'image-a',
    providerID: 'exoscale://a',
    conditions: [condition('Ready'), condition('Drifted')],
  }
  await ok(
    kubectl,
    `patch nodeclaim columns --subresource=status --type=merge -p ${JSON.stringify({ status })}`,
  )
  assert.match(
    await ok(kubectl, 'get nodeclaims columns'),
    /^NAME +TYPE +CAPACITY +ZONE +NODE +READY +AGE\ncolumns +standard.medium +on-demand +ch-gva-2 +node-a +True +\d+s\n$/,
  )
  assert.match(
    await ok(kubectl, 'get nodeclaims columns -o wide'),
    /AGE +IMAGEID +ID +NODEPOOL +NODECLASS +DRIFTED\n.* \d+s +image-a +exoscale:\/\/a +pool-a +standard +True\n$/,
  )
  await ok(kubectl, 'delete nodeclaim columns')
}

async function showsNodeOverlays(kubectl: Kubectl): Promise<void> {
  await ok(kubectl, 'create -f -', named(aNodeOverlay({ weight: 10 }), 'columns'))
  const status = { conditions: [condition('Ready')] }
  await ok(
    kubectl,
    `patch nodeoverlay columns --subresource=status --type=merge -p ${JSON.stringify({ status })}`,
  )
  assert.match(await ok(kubectl, 'get overlays columns'), /^NAME +READY +AGE\ncolumns +True +\d+s\n$/)
  assert.match(await ok(kubectl, 'get nodeoverlays columns -o wide'), /AGE +WEIGHT\n.* \d+s +10\n$/)
  await ok(kubectl, 'delete nodeoverlay columns')
}

async function showsCapacityBuffers(kubectl: Kubectl): Promise<void> {
  await ok(kubectl, 'create -f -', named(aCapacityBuffer(), 'columns'))
  const status = { replicas: 3, podTemplateRef: { name: 'web' }, conditions: [condition('Provisioning')] }
  await ok(
    kubectl,
    `patch capacitybuffer columns --subresource=status --type=merge -p ${JSON.stringify({ status })}`,
  )
  assert.match(
    await ok(kubectl, 'get cb columns'),
    /^NAME +STRATEGY +PODTEMPLATE +REPLICAS +CONDITIONSTYPE +CONDITIONSSTATUS +CONDITIONSREASON +AGE\ncolumns +buffer\.x-k8s\.io\/active-capacity +web +3 +Provisioning +True +\S+ +\d+s\n$/,
  )
  await ok(kubectl, 'delete capacitybuffer columns')
}

/** API-1.1 and EXO-14: the printer columns, wide ones too. */
export async function showsColumns(kubectl: Kubectl): Promise<void> {
  await showsNodePools(kubectl)
  await showsNodeClaims(kubectl)
  await showsNodeOverlays(kubectl)
  await showsCapacityBuffers(kubectl)
}

/** The category, the descriptions, and the types that `explain` shows. */
export async function explains(kubectl: Kubectl): Promise<void> {
  const explain = async (field: string) => (await ok(kubectl, `explain ${field}`)).replaceAll(/\s+/g, ' ')
  const budgets = await explain('nodepool.spec.disruption.budgets')
  assert.match(budgets, /FIELD: budgets <\[\]Object>/)
  assert.match(budgets, /An empty list sets no bound\./)
  assert.match(budgets, /nodes <string>/)
  assert.match(budgets, /percentage of the nodes of this pool/)
  assert.match(await explain('exoscalenodeclass.spec.kubelet'), /Settings of the kubelet/)
  assert.match(await explain('cnc.spec.labels'), /Labels of every node, there from the moment it joins/)
  assert.match(await explain('capinc.spec.driftPolicy'), /Machines whose template has changed since/)
  assert.match(await explain('nodeclaim.status.providerID'), /as the cloud names it/)
  const resources = await ok(kubectl, 'api-resources --categories=karpenter --no-headers -o name')
  assert.deepEqual(lines(resources).sort(), [
    'clevernodeclasses.karpenter.clever-cloud.com',
    'clusterapinodeclasses.karpenter.cluster.x-k8s.io',
    'exoscalenodeclasses.karpenter.exoscale.com',
    'kwoknodeclasses.karpenter.kwok.sh',
    'nodeclaims.karpenter.sh',
    'nodeoverlays.karpenter.sh',
    'nodepools.karpenter.sh',
  ])
}

/** API-96: the scale subresource sets a static pool's replicas and leaves a dynamic pool dynamic. */
export async function scales(kubectl: Kubectl): Promise<void> {
  await ok(kubectl, 'create -f -', named(aNodePool({ replicas: 3 }), 'static'))
  await ok(kubectl, 'create -f -', named(aNodePool(), 'dynamic'))
  await ok(kubectl, 'scale nodepool static --replicas=5')
  assert.equal(await ok(kubectl, 'get nodepool static -o jsonpath={.spec.replicas}'), '5')
  const { code, err } = await run(kubectl, 'scale nodepool dynamic --replicas=5')
  assert.equal(code, 1)
  assert.match(err, /cannot change between static/)
  assert.equal(await ok(kubectl, 'get nodepool dynamic -o jsonpath={.spec.replicas}'), '')
  await ok(kubectl, 'delete nodepools static dynamic')
}

const examples = fileURLToPath(new URL('../../../../../examples/exoscale', import.meta.url))

/**
 * EXO-13: the publicly documented manifests apply as they are, twice, and show as the sheet says
 * (EXO-14); so do Tenon's own examples.
 */
export async function appliesExamples(kubectl: Kubectl): Promise<void> {
  await ok(kubectl, 'apply -f -', publicExamplesStream)
  const again = lines(await ok(kubectl, 'apply -f -', publicExamplesStream))
  assert.deepEqual(
    again.filter((line) => !line.endsWith(' unchanged')),
    [],
  )
  assert.match(await ok(kubectl, 'get exoscalenodeclasses gpu'), /^NAME +READY +AGE\ngpu +\d+s\n$/)
  await ok(kubectl, 'delete -f -', publicExamplesStream)

  const own = await kubectl(['apply', '--dry-run=server', '-f', examples])
  assert.equal(own.code, 0, `examples/exoscale: ${own.err}`)
}
