/** Replaces names in snapshots (ask.md 4). */
import { createHmac } from 'node:crypto'
import {
  type ConfigMap,
  isQuantity,
  isRecord,
  kinds,
  type KubeObject,
  labels,
  wellKnownLabels,
} from '@tenon/api'
import type { JournalEntry, OperatorMemory } from '@tenon/operator'
import type { Snapshot, SnapshotCatalogue } from './snapshot.ts'
import { groupAnnotation } from './take.ts'

/** Fields whose values are defined by Kubernetes or reveal nothing. */
const wordsOfKubernetes: ReadonlySet<string> = new Set([
  'apiVersion',
  'kind',
  'group',
  'version',
  'plural',
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'lastTransitionTime',
  'startTime',
  'finalizers',
  'operator',
  'effect',
  'key',
  'topologyKey',
  'whenUnsatisfiable',
  'nodeAffinityPolicy',
  'nodeTaintsPolicy',
  'matchLabelKeys',
  'phase',
  'type',
  'status',
  'reason',
  'protocol',
  'restartPolicy',
  'preemptionPolicy',
  'volumeBindingMode',
  'provisioner',
  'driver',
  'accessModes',
  'unhealthyPodEvictionPolicy',
  'disruptionMode',
  'consolidationPolicy',
  'schedule',
  'duration',
  'consolidateAfter',
  'expireAfter',
  'nodes',
  'reasons',
  'unit',
  'provisioningClassName',
])
/** Fields that are dropped, as they hold free text. */
const textsForPeople: ReadonlySet<string> = new Set(['message', 'addresses', 'annotations'])
/** Annotations that decisions read, with values that contain no names. */
const pauseAnnotations = /^tenon\.sh\/(paused|auto-brake|mode)$/
const readAnnotations = /^([a-z-]+\.)*(karpenter\.sh|kubernetes\.io)\//
/** Fields that are maps by label or by resource. */
const labelMaps: ReadonlySet<string> = new Set(['labels', 'matchLabels', 'nodeSelector', 'selector'])
/** Deprecated names of well-known labels, which nodes still have besides the current ones. */
const formerLabels: readonly string[] = [
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
]
/** Well-known labels whose values are names of objects. */
const nameLabels: ReadonlySet<string> = new Set([labels.hostname, labels.nodePool])
/** Text that must keep its meaning, such as quantities, and names that every cluster has. */
const plainText =
  /^(|true|false|[0-9TZ:.+-]+|Never|Infinity|default-scheduler|kube-system|system-(cluster|node)-critical)$/

/**
 * Replaces names by pseudonyms. Equal text gets the same pseudonym everywhere, also in other snapshots that are
 * redacted with the same key.
 */
export function redacted(snapshot: Snapshot, key: string): Snapshot {
  const redactor = new Redactor(snapshot.cloud.wellKnownLabels, key)
  const { objects, catalogues, journal, memory, origin, nodeDecisions, settings } = snapshot
  const { brakeNamespace } = settings
  return {
    ...snapshot,
    settings: {
      ...settings,
      ...(brakeNamespace !== undefined && { brakeNamespace: redactor.name(brakeNamespace) }),
    },
    origin:
      origin.kind === 'controller'
        ? { ...origin, identity: redactor.name(origin.identity) }
        : { ...origin, server: redactor.name(origin.server), catalogue: origin.catalogue },
    objects: objects.map((object) => redactor.object(object)),
    catalogues: catalogues.map((catalogue) => redactor.catalogue(catalogue)),
    memory: {
      ...memory,
      marked: memory.marked.map((id) => redactor.name(id)),
      unseenClaims: memory.unseenClaims.map((claim) => redactor.object(claim)),
      plans: memory.plans.map((plan) => ({
        ...plan,
        target: { ...plan.target, name: redactor.name(plan.target.name) },
      })),
      reserved: redactor.keyed(memory.reserved),
      pausedUntilMs: redactor.keyed(memory.pausedUntilMs),
      // Webhooks write what they want into their messages.
      refusedClaims: Object.fromEntries(
        Object.entries(memory.refusedClaims).map(([uid, { untilMs }]) => [
          uid,
          { message: 'the API server rejects its NodeClaim', untilMs },
        ]),
      ),
      buffers: memory.buffers.map((buffer) => redactor.buffer(buffer)),
      bufferRooms: redactor.keyed(memory.bufferRooms),
      ...(memory.predictions && {
        predictions: memory.predictions.map((prediction) => redactor.prediction(prediction)),
      }),
    },
    nodeDecisions: nodeDecisions.map((decision) => ({
      ...decision,
      ...(decision.node !== undefined && { node: redactor.name(decision.node) }),
      nodeClaim: redactor.name(decision.nodeClaim),
      nodePool: redactor.name(decision.nodePool),
      message: decision.cause,
      ...(decision.others && { others: decision.others.map((each) => ({ ...each, message: each.cause })) }),
    })),
    journal: journal.map((entry) => redactedEntry(redactor, entry)),
  }
}

/** Drops the message: it contains names, and the reason is enough. */
function redactedEntry(redactor: Redactor, entry: JournalEntry): JournalEntry {
  const named = (names: readonly string[]): readonly string[] => names.map((name) => redactor.name(name))
  const { nodeClaims, nodePool, nodes, pods, reason, replacements, spend } = entry
  const { workloads } = pods ?? {}
  const renamed = <T extends { readonly namespace: string; readonly workload: string }>(each: T): T => {
    const [kind = '', name = ''] = each.workload.split('/')
    return {
      ...each,
      namespace: redactor.name(each.namespace),
      workload: name === '' ? '' : `${kind}/${redactor.name(name)}`,
    }
  }
  return {
    ...entry,
    message: reason,
    nodeClaims: named(nodeClaims),
    nodes: named(nodes),
    ...(nodePool !== undefined && { nodePool: redactor.name(nodePool) }),
    ...(replacements && { replacements: named(replacements) }),
    ...(pods && {
      pods: {
        ...pods,
        names: pods.names.map((key) => named(key.split('/')).join('/')),
        ...(workloads && { workloads: workloads.map(renamed) }),
      },
    }),
    ...(spend && {
      spend: spend.map((each) => ({
        ...each,
        nodePool: redactor.name(each.nodePool),
        // Labels are left out.
        shares: each.shares.map(({ namespace, pricePerHour, workload }) =>
          renamed({ namespace, workload, pricePerHour }),
        ),
      })),
    }),
  }
}

/** Replaces names by pseudonyms that depend on the key only. */
export class Redactor {
  readonly #key: string
  /** Labels whose values are kept. */
  readonly #kept: ReadonlySet<string>
  readonly #names = new Map<string, string>()

  /** @param known labels of the cloud, whose values are kept. */
  constructor(known: readonly string[], key: string) {
    this.#key = key
    this.#kept = new Set(
      [...wellKnownLabels, ...formerLabels, ...known].filter((label) => !nameLabels.has(label)),
    )
  }

  name(text: string): string {
    if (plainText.test(text)) return text
    let pseudonym = this.#names.get(text)
    if (pseudonym === undefined) {
      pseudonym = `x${createHmac('sha256', this.#key).update(text).digest('hex').slice(0, 12)}`
      this.#names.set(text, pseudonym)
    }
    return pseudonym
  }

  keyed<T>(record: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
    return Object.fromEntries(Object.entries(record).map(([name, value]) => [this.name(name), value]))
  }

  catalogue({
    nodePools,
    instanceTypes,
    defaults,
    kubeletVersion,
    problem,
  }: SnapshotCatalogue): SnapshotCatalogue {
    return {
      nodePools: nodePools.map((name) => this.name(name)),
      instanceTypes,
      ...(defaults && { defaults }),
      ...(kubeletVersion !== undefined && { kubeletVersion }),
      ...(problem !== undefined && { problem: 'not known' }),
    }
  }

  /** Labels with their values. */
  labels(record: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const entries = Object.entries(record).map(
      ([key, value]) => [key, this.#kept.has(key) ? value : this.name(value)] as const,
    )
    return Object.fromEntries(entries)
  }

  object<T extends KubeObject>(object: T): T {
    const walked = object.kind === kinds.configMap.kind ? this.#pauses(object) : this.#walk(object, '')
    // Keeps the object's type.
    return walked as T
  }

  buffer(buffer: OperatorMemory['buffers'][number]): OperatorMemory['buffers'][number] {
    const { name, namespace, template } = buffer
    // Keeps the template's type.
    const walked = this.#walk(template, '') as typeof template
    return { ...buffer, name: this.name(name), namespace: this.name(namespace), template: walked }
  }

  prediction(
    prediction: NonNullable<OperatorMemory['predictions']>[number],
  ): NonNullable<OperatorMemory['predictions']>[number] {
    const { containers, name, namespace, target } = prediction
    return {
      ...prediction,
      name: this.name(name),
      namespace: this.name(namespace),
      target: { ...target, name: this.name(target.name) },
      containers: containers.map(({ container, requests }) => ({
        container: this.name(container),
        requests,
      })),
    }
  }

  /** The only ConfigMap in a snapshot is that of `tenon pause`. */
  #pauses({ apiVersion, kind, metadata, data }: ConfigMap): ConfigMap {
    const { name, namespace = '' } = metadata
    const kept = Object.entries(data ?? {}).map(([key, value]) => [key, String(withoutReason(value))])
    return {
      apiVersion,
      kind,
      metadata: { name, namespace: this.name(namespace) },
      data: Object.fromEntries(kept),
    }
  }

  #walk(value: unknown, member: string): unknown {
    if (typeof value === 'string') return this.#text(value, member)
    if (Array.isArray(value)) return value.map((each: unknown) => this.#walk(each, member))
    if (!isRecord(value)) return value
    if (labelMaps.has(member) && Object.values(value).every((each) => typeof each === 'string'))
      return this.#labels(value)
    const label = value['key']
    const entries = Object.entries(value).flatMap(([name, part]): [string, unknown][] => {
      if (name === 'annotations' && isRecord(part)) return [[name, this.#annotations(part)]]
      // Of a node's system only the version that decides about skew.
      if (name === 'nodeInfo' && isRecord(part)) return [[name, { kubeletVersion: part['kubeletVersion'] }]]
      if (textsForPeople.has(name)) return name === 'message' ? [[name, '']] : []
      const isKept = typeof label === 'string' && this.#kept.has(label)
      if (name === 'values' || name === 'value') return [[name, isKept ? part : this.#values(part)]]
      return [[name, this.#walk(part, name)]]
    })
    return Object.fromEntries(entries)
  }

  #annotations(annotations: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    return Object.fromEntries(
      Object.entries(annotations).flatMap(([key, value]) => {
        if (pauseAnnotations.test(key)) return [[key, withoutReason(value)]]
        if (groupAnnotation.test(key)) return [[key, this.#values(value)]]
        // What kubectl applied repeats the object as it was, with its names, texts and environment.
        if (key === 'kubectl.kubernetes.io/last-applied-configuration') return []
        return readAnnotations.test(key) ? [[key, value]] : []
      }),
    )
  }

  #labels(record: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    return Object.fromEntries(
      Object.entries(record).map(([key, value]) => [key, this.#kept.has(key) ? value : this.#values(value)]),
    )
  }

  #values(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each: unknown) => this.#values(each))
    return typeof value === 'string' ? this.name(value) : value
  }

  #text(text: string, member: string): string {
    return wordsOfKubernetes.has(member) || isQuantity(text) ? text : this.name(text)
  }
}

/** Drops the reason of a pause, which is free text. An invalid pause stays invalid. */
function withoutReason(value: unknown): unknown {
  if (typeof value !== 'string' || plainText.test(value)) return value
  try {
    const { reason: _reason, ...rest } = JSON.parse(value) as Readonly<Record<string, unknown>>
    return JSON.stringify(rest)
  } catch {
    return 'unreadable'
  }
}
