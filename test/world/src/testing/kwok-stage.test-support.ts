/** A stage on which instances are those of the simulated provider. */
import type { TestContext } from 'node:test'
import { kinds, labels, type Node, type NodePool, type Pod, type Requirement } from '@tenon/api'
import {
  type KwokDependencies,
  type KwokNodeClass,
  kwokNodeClassKind,
  readCatalogue,
} from '@tenon/provider-kwok'
import { Stage } from './stage.test-support.ts'
import type { WorldOptions } from '../world.ts'

/** Opens a stage with a NodePool and a KWOKNodeClass `default`. */
export async function openKwok(
  t: TestContext,
  options: Partial<WorldOptions> & {
    readonly pool?: Partial<NodePool['spec']>
    readonly kwok?: Pick<KwokDependencies, 'instanceTypes' | 'partitions'>
  } = {},
): Promise<Stage> {
  return await Stage.open(t, { provider: 'kwok', ...options })
}

/** The types of a catalogue that has nothing wrong. */
export function catalogueOf(items: readonly object[]): KwokDependencies['instanceTypes'] & object {
  const { types, problems } = readCatalogue(JSON.stringify(items))
  if (problems.length > 0) throw new Error(problems.join('; '))
  return types
}

/** A requirement that one of `values` is met. */
export function is(key: string, ...values: readonly string[]): Requirement {
  return { key, operator: 'In', values }
}

/** Creates a claim of no NodePool for one of `types`, and lets the instance join. */
export async function launch(
  stage: Stage,
  name: string,
  types: readonly string[],
  ...requirements: readonly Requirement[]
): Promise<void> {
  await stage.claim(name, { requirements: [is(labels.instanceType, ...types), ...requirements] })
}

/** The one Node of a claim. */
export function nodeOf(stage: Stage, claim: string): Node | undefined {
  const providerID = stage.claimNow(claim)?.status?.providerID
  return stage.world.nodes().find(({ spec }) => spec?.providerID === providerID)
}

/** Changes annotations of the node class that simulate failures; null removes one. */
export async function simulate(
  stage: Stage,
  settings: Readonly<Record<string, string | null>>,
): Promise<void> {
  const annotations = Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [`simulation.karpenter.kwok.sh/${name}`, value]),
  )
  stage.patch(kwokNodeClassKind, 'default', { metadata: { annotations } })
  await stage.pass(100)
}

/** Changes the spec of the node class. */
export function configure(stage: Stage, spec: KwokNodeClass['spec'] & object): void {
  stage.patch(kwokNodeClassKind, 'default', { spec })
}

/** Creates a pod for the cluster's own scheduler. */
export function pod(
  stage: Stage,
  name: string,
  { labels: tags = {}, annotations = {}, requests = { cpu: '1', memory: '1Gi' }, ...spec }: PodParts = {},
): void {
  stage.world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: tags, annotations },
    spec: {
      containers: [
        { name: 'app', image: 'registry.k8s.io/pause', resources: { requests, limits: requests } },
      ],
      ...spec,
    },
  })
}

/** What a pod has beside its name. */
export type PodParts = Partial<Omit<Pod['spec'], 'containers'>> &
  Pick<Pod['metadata'], 'annotations' | 'labels'> & { readonly requests?: Readonly<Record<string, string>> }

/** The Node that a pod runs on. */
export function nodeUnder(stage: Stage, name: string): Node | undefined {
  const bound = stage.podNow(name)?.spec.nodeName ?? ''
  return stage.nodeNow(bound)
}

/** Sets the Ready condition of a Node as if it had been so since `sinceMs`. */
export function turnReady(stage: Stage, node: string, status: 'True' | 'False', sinceMs: number): void {
  const at = new Date(sinceMs).toISOString().replace(/\.\d+Z$/, 'Z')
  const condition = {
    type: 'Ready',
    status,
    reason: 'Told',
    message: '',
    lastTransitionTime: at,
    lastHeartbeatTime: at,
  }
  stage.patch(kinds.node, node, { status: { conditions: [condition] } }, 'status')
}
