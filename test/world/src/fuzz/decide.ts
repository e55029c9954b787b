/** Runs the engine on a case, without a cluster. */
import {
  type InstanceType,
  type KubeObject,
  type NodePool,
  type Pod,
  type PodSpec,
  wellKnownLabels,
} from '@tenon/api'
import { type DaemonInput, type PodReason, schedule, type SchedulingInput } from '@tenon/engine'
import { defaultCatalogue, readCatalogue } from '@tenon/provider-kwok'
import type { Case } from './case.ts'
import type { Decision } from './oracles/decisions.ts'

type Policy = SchedulingInput['policy']

/** Decides about the pods of a case on an empty cluster. */
export function decide(
  given: Case,
  improvement?: Policy['improvement'],
  simulation?: Policy['simulation'],
): Decision {
  const input = inputOf(given)
  const { claims, deferred, placements, failures, undecided, pricePerHour, faults } = schedule({
    ...input,
    policy: { ...input.policy, ...(improvement && { improvement }), ...(simulation && { simulation }) },
  })
  return {
    given: podsOf(given.objects).length,
    claims: claims.map(({ pods, pricePerHour: price, instanceTypes }) => ({
      pods: pods.map(({ metadata }) => metadata.uid ?? ''),
      pricePerHour: price,
      types: instanceTypes.length,
    })),
    elsewhere: [
      ...deferred.flatMap(({ claim }) => claim.pods),
      ...placements.map(({ pod }) => pod),
      ...failures.map(({ pod }) => pod),
      ...undecided,
    ].map(({ metadata }) => metadata.uid ?? ''),
    isAtLimits: failures.some(({ reason }) => isLimit(reason)),
    pricePerHour,
    faults: faults.map(({ part, stack }) => `${part}: ${stack}`),
  }
}

function isLimit(reason: PodReason): boolean {
  return (
    reason.kind === 'noTemplate' &&
    reason.templates.some(({ reason: { kind } }) => kind === 'limits' || kind === 'nodeLimit')
  )
}

function inputOf(given: Case): SchedulingInput {
  const { preferences = 'Respect', minValues = 'Strict' } = given.settings
  const types = typesOf(given)
  return {
    pods: podsOf(given.objects),
    nodes: [],
    pools: given.objects
      .filter((object): object is NodePool => object.kind === 'NodePool')
      .map((nodePool) => ({ nodePool, instanceTypes: types, usage: {} })),
    daemons: given.objects.filter(({ kind }) => kind === 'DaemonSet').map(daemonOf),
    topology: {
      pods: [],
      nodes: new Map(),
      namespaces: new Map([
        ['default', {}],
        ['other', { tier: 'back' }],
      ]),
    },
    policy: {
      preferences,
      minValues,
      wellKnownLabels: new Set(wellKnownLabels),
      maxInstanceTypes: 600,
    },
  }
}

function typesOf({ catalogue, surroundings }: Case): readonly InstanceType[] {
  const types = catalogue === undefined ? defaultCatalogue() : readCatalogue(JSON.stringify(catalogue)).types
  const unpriced = new Set(surroundings.unpriced)
  return types.map((type) =>
    unpriced.has(type.name)
      ? { ...type, offerings: type.offerings.map((each) => ({ ...each, pricePerHour: undefined })) }
      : type,
  )
}

interface Workload extends KubeObject {
  readonly spec?: PodSpec & {
    readonly replicas?: number
    readonly parallelism?: number
    readonly template?: { readonly metadata?: Pod['metadata']; readonly spec: PodSpec }
  }
}

function podsOf(objects: readonly KubeObject[]): readonly Pod[] {
  return (objects as readonly Workload[]).flatMap(({ kind, metadata, spec }): readonly Pod[] => {
    const { namespace = 'default' } = metadata
    const one = (index: number, labels: Pod['metadata']['labels'], podSpec: PodSpec): Pod => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${metadata.name}-${index}`,
        namespace,
        uid: `${namespace}/${metadata.name}-${index}`,
        ...(labels && { labels }),
      },
      spec: podSpec,
    })
    if (spec === undefined) return []
    if (kind === 'Pod') return [one(0, metadata.labels, spec)]
    const { template } = spec
    if (template === undefined || !['Deployment', 'StatefulSet', 'Job'].includes(kind)) return []
    const count = spec.replicas ?? spec.parallelism ?? 1
    return Array.from({ length: count }, (_, index) => one(index, template.metadata?.labels, template.spec))
  })
}

function daemonOf({ metadata, spec }: Workload): DaemonInput {
  const { template } = spec ?? {}
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? 'default',
    labels: template?.metadata?.labels ?? {},
    spec: template?.spec ?? { containers: [] },
  }
}
