/** `tenon explain`: why a pod waits, why a node is still there, what a NodePool waits for (ask.md 2). */
import {
  type ExplainedPod,
  explainNode,
  explainNodePool,
  gathered,
  groupsText,
  nodeDocument,
  nodePoolDocument,
  nodePoolText,
  nodeText,
  podDocument,
  PodExplainer,
  podText,
  Study,
} from '@tenon/ask'
import { type KubeObject, matchesSelector, type Pod } from '@tenon/api'
import { isProvisionable } from '@tenon/operator'
import { snapshotFrom } from '../ask/source.ts'
import type { Io } from '../io.ts'
import type { OutputFlags, SelectionFlags, SourceFlags } from '../kubectl/flags.ts'
import { type NamedKind, nodeClaimKind, nodeKind, nodePoolKind, notFound, podKind } from '../kubectl/kinds.ts'
import { formatOf } from '../kubectl/output/format.ts'
import { printObjects } from '../kubectl/output/objects.ts'
import { fieldMatch, labelSelectorOf } from '../kubectl/selectors.ts'
import { type NamedTarget, targetsOf } from '../kubectl/targets.ts'

export interface ExplainFlags extends SourceFlags, SelectionFlags, OutputFlags {}

/** One answer, for people and for programs. */
interface Answer {
  readonly lines: readonly string[]
  readonly object: KubeObject
}

/** Milliseconds for what would let one pod run; where many are asked about nothing is tried. */
const missesMs = 5000

/** @throws KubectlError when an object is not there. */
export async function runExplain(io: Io, args: readonly string[], flags: ExplainFlags): Promise<void> {
  const format = formatOf(flags.output)
  const targets = targetsOf(args, flags)
  const study = await Study.open(await snapshotFrom(io, flags))
  try {
    const explaining = new Explaining(study, flags, io.interrupted)
    const isList = targets.kind === 'all' || targets.targets.length > 1
    if (targets.kind === 'all' && format.kind === 'plain' && targets.kinds.includes(podKind))
      io.out(`${groupsText(gathered(await explaining.waitingPods())).join('\n')}\n`)
    const asked =
      targets.kind === 'named'
        ? targets.targets
        : targets.kinds
            .filter((kind) => format.kind !== 'plain' || kind !== podKind)
            .flatMap((kind) => explaining.all(kind))
    const answers: Answer[] = []
    for (const target of asked) answers.push(await explaining.answer(target))
    if (format.kind !== 'plain')
      printObjects(io.out, format, {
        objects: answers.map(({ object }) => object),
        isList,
        nameOf: ({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`,
      })
    else if (answers.length > 0) io.out(`${answers.map(({ lines }) => lines.join('\n')).join('\n\n')}\n`)
  } finally {
    await study.close()
  }
}

/** Answers about the objects of one study. */
class Explaining {
  readonly #study: Study
  readonly #flags: ExplainFlags
  readonly #signal: AbortSignal
  readonly #pods: PodExplainer

  constructor(study: Study, flags: ExplainFlags, signal: AbortSignal) {
    this.#study = study
    this.#flags = flags
    this.#signal = signal
    this.#pods = new PodExplainer(study)
  }

  /** Objects of a kind that the flags select; of pods those that wait for a node. */
  all(kind: NamedKind): readonly NamedTarget[] {
    const { nodeClaims, nodePools, nodes } = this.#study.operator.caches
    const objects: readonly KubeObject[] =
      kind === podKind
        ? this.#waiting()
        : kind === nodeKind
          ? nodes.list()
          : kind === nodeClaimKind
            ? nodeClaims.list()
            : nodePools.list()
    return this.#selected(objects).map(({ metadata: { name, namespace } }) => ({
      kind,
      name,
      ...(namespace !== undefined && { namespace }),
    }))
  }

  async waitingPods(): Promise<readonly ExplainedPod[]> {
    const explained: ExplainedPod[] = []
    for (const pod of this.#selected(this.#waiting()))
      explained.push({ pod, explanation: await this.#pods.explain(pod, { missesMs: 0 }) })
    return explained
  }

  async answer(target: NamedTarget & { readonly namespace?: string }): Promise<Answer> {
    const { kind, name } = target
    if (kind === podKind) return await this.#pod(target)
    if (kind === nodePoolKind) return await this.#nodePool(name)
    const isThere = this.#isThere(kind, name)
    const found = await explainNode(this.#study, name, this.#signal)
    if (found === undefined || (!isThere && found.case !== 'gone')) throw notFound(kind, name)
    const word = kind === nodeKind ? 'NodeExplanation' : 'NodeClaimExplanation'
    return { lines: nodeText(found), object: nodeDocument(word, name, found) }
  }

  /** A name of a Node is none of a NodeClaim, and the other way round. */
  #isThere(kind: NamedKind, name: string): boolean {
    const { nodeClaims, nodes } = this.#study.operator.caches
    return (kind === nodeKind ? nodes.get({ name }) : nodeClaims.get({ name })) !== undefined
  }

  async #pod({ name, namespace }: NamedTarget & { readonly namespace?: string }): Promise<Answer> {
    const space = namespace ?? this.#flags.namespace ?? 'default'
    const pod = this.#study.operator.caches.pods.get({ namespace: space, name })
    if (pod === undefined) throw notFound(podKind, name)
    const found = await this.#pods.explain(pod, { missesMs })
    return { lines: podText(found), object: podDocument(found) }
  }

  async #nodePool(name: string): Promise<Answer> {
    const decision = await this.#study.decide()
    const found = await explainNodePool(this.#study, name, this.#signal, decision)
    if (found === undefined) throw notFound(nodePoolKind, name)
    return { lines: nodePoolText(found), object: nodePoolDocument(found) }
  }

  #waiting(): readonly Pod[] {
    return this.#study.operator.caches.pods.list().filter(isProvisionable)
  }

  #selected<T extends KubeObject>(objects: readonly T[]): readonly T[] {
    const { allNamespaces, fieldSelector, namespace = 'default', selector } = this.#flags
    const labelled = selector === undefined ? undefined : labelSelectorOf(selector)
    const matches = fieldSelector === undefined ? undefined : fieldMatch(fieldSelector)
    return objects.filter(
      (object) =>
        (allNamespaces === true || [undefined, namespace].includes(object.metadata.namespace)) &&
        (labelled === undefined || matchesSelector(labelled, object.metadata.labels ?? {})) &&
        (matches === undefined || matches(object)),
    )
  }
}
