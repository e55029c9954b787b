/**
 * `tenon explain`: why a pod is pending, why a node still exists, what a NodePool or ProvisioningRequest waits
 * for (ask.md 2).
 */
import {
  type ExplainedPod,
  explainNode,
  explainNodePool,
  explainRequest,
  gathered,
  groupsText,
  nodeDocument,
  nodePoolDocument,
  nodePoolText,
  nodeText,
  podDocument,
  PodExplainer,
  podGroupApis,
  podGroupDocument,
  PodGroupExplainer,
  podGroupText,
  type PodExplanation,
  patchCommand,
  patchOf,
  podText,
  requestDocument,
  requestsOf,
  requestText,
  shownMisses,
  Study,
} from '@tenon/ask/explain'
import { counted, type KubeObject, type Pod } from '@tenon/api'
import { explainWorkload, workloadDocument, workloadsOf, workloadText } from '@tenon/ask/simulate'
import { snapshotFrom } from '../../source/snapshot.ts'
import { KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { chosenNamespace, hasCluster, onCluster } from '../../kubectl/connection.ts'
import { paintedLines, paintFor } from '../../kubectl/color.ts'
import type { OutputFlags, SelectionFlags, SourceFlags } from '../../kubectl/flags.ts'
import {
  explainedKinds,
  type NamedKind,
  nodeClaimKind,
  nodeKind,
  nodePoolKind,
  notFound,
  podGroupNamedKinds,
  podKind,
  requestKind,
  workloadKinds,
} from '../../kubectl/kinds.ts'
import { formatOf } from '../../kubectl/output/format.ts'
import { printObjects } from '../../kubectl/output/objects.ts'
import { selects } from '../../kubectl/selectors.ts'
import { type NamedTarget, type Targets, targetsOf } from '../../kubectl/targets.ts'

export interface ExplainFlags extends SourceFlags, SelectionFlags, OutputFlags {
  /** Print every change that would help, not only the cheapest ones. */
  readonly all?: true
  /** Only nodes that PodDisruptionBudgets hold for good. */
  readonly stuck?: true
}

/** Flags with the namespace that they or the context select. */
interface ChosenFlags extends ExplainFlags {
  readonly namespace: string
}

/** One answer, as text and as an object. */
interface Answer {
  readonly lines: readonly string[]
  readonly object: KubeObject
  /** For a pod: shell commands. */
  readonly patches?: readonly string[]
  /** For a pod: number of changes that were not tried because of the time limit. */
  readonly untried?: number
  /** For a node: whether only PodDisruptionBudgets hold it that can never allow an eviction. */
  readonly isStuck?: boolean
}

/** Time limit for finding changes that would help, per answer. Grouped pods get none. */
const missesMs = 5000

/** Colours: obstacles, suggestions, and the age of the facts. */
const styles = [
  ['✗ ', 'red'],
  ['+ ', 'green'],
  ['Facts of ', 'dim'],
] as const

/** @throws KubectlError if an object does not exist. */
export async function runExplain(io: Io, args: readonly string[], flags: ExplainFlags): Promise<void> {
  if (flags.snapshot === undefined && flags.controller === undefined && hasCluster(io, flags)) {
    const isDone = await onCluster(io, flags, async (connection) => {
      const { client } = connection
      const isAboutGroups = /^(nodegroups?|ng)(\/|$)/i.test(args[0] ?? '')
      const hasNodePools = async () =>
        (await client.servedKinds('karpenter.sh', 'v1', { signal: io.interrupted })).length > 0
      if (!isAboutGroups && (await hasNodePools())) return false
      const { explainedByGroups, explainNodeGroups } = await import('./node-groups.ts')
      if (!isAboutGroups) return await explainedByGroups(io, args, flags, connection)
      await explainNodeGroups(io, args, connection)
      return true
    })
    if (isDone) return
  }
  const isPatch = flags.output === 'patch'
  const format = formatOf(isPatch ? undefined : flags.output)
  const targets = targetsOf(args, flags, explainedKinds)
  if (flags.stuck === true) checkStuck(targets)
  const namespace = chosenNamespace(io, flags)
  const study = await Study.open(await snapshotFrom(io, flags))
  try {
    const print = (text: string) => {
      io.out(paintedLines(text, paintFor(io, flags.color), styles))
    }
    const explaining = new Explaining(study, { ...flags, namespace }, io.interrupted)
    if (isPatch) {
      await printPatches(io, explaining, targets)
      return
    }
    const isList = targets.kind === 'all' || targets.targets.length > 1
    if (targets.kind === 'all' && format.kind === 'plain' && targets.kinds.includes(podKind))
      print(`${groupsText(gathered(await explaining.waitingPods())).join('\n')}\n`)
    const asked =
      targets.kind === 'named'
        ? targets.targets
        : targets.kinds
            .filter((kind) => format.kind !== 'plain' || kind !== podKind)
            .flatMap((kind) => explaining.all(kind))
    const answers = await explaining.answers(asked)
    if (format.kind !== 'plain')
      printObjects(io.out, format, {
        objects: answers.map(({ object }) => object),
        isList,
        nameOf: ({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`,
      })
    else print(plainText(answers, flags))
    if (isList) warnOfUntried(io, answers)
  } finally {
    await study.close()
  }
}

function plainText(answers: readonly Answer[], { stuck }: ExplainFlags): string {
  if (answers.length > 0) return `${answers.map(({ lines }) => lines.join('\n')).join('\n\n')}\n`
  return stuck === true
    ? 'No node is held only by PodDisruptionBudgets that can never allow an eviction\n'
    : ''
}

/** @throws KubectlError for anything but nodes and NodeClaims. */
function checkStuck(targets: Targets): void {
  const kinds = targets.kind === 'named' ? targets.targets.map(({ kind }) => kind) : targets.kinds
  if (kinds.some((kind) => kind !== nodeKind && kind !== nodeClaimKind))
    throw new KubectlError('error: --stuck is for nodes and NodeClaims')
}

/** A change that was not tried might help too. */
function warnOfUntried(io: Io, answers: readonly Answer[]): void {
  const cut = answers.filter(({ untried = 0 }) => untried > 0).length
  if (cut > 0)
    io.err(
      `Warning: after ${missesMs / 1000} s no more changes were tried that might let pods run; that concerns ${cut} of ${counted(answers.length, 'object')} (pending.untried). Ask about fewer pods\n`,
    )
}

/**
 * Prints the changes that would help as kubectl commands.
 * @throws KubectlError for anything but pods.
 */
async function printPatches(io: Io, explaining: Explaining, targets: Targets): Promise<void> {
  const pods = targets.kind === 'named' ? targets.targets : explaining.all(podKind)
  const kinds = targets.kind === 'named' ? pods.map(({ kind }) => kind) : targets.kinds
  if (kinds.some((kind) => kind !== podKind))
    throw new KubectlError('error: -o patch is for pods: name pods, or use -o json')
  for (const pod of pods) {
    const { patches = [], lines, untried = 0 } = await explaining.answer(pod)
    if (patches.length === 0) io.err(`No change is known that would help. ${lines[0] ?? ''}\n`)
    if (untried > 0) io.err(`${counted(untried, 'change')} not tried, as time was up: pod/${pod.name}\n`)
    for (const line of patches) io.out(`${line}\n`)
  }
}

/** A comment and a command for each change; a comment only if no patch can do it. */
function patchLines(pod: Pod, { pending }: PodExplanation, all: boolean): readonly string[] {
  const misses = pending?.misses ?? []
  return misses.slice(0, all ? undefined : shownMisses).flatMap(({ change }) => {
    const patch = patchOf(change, pod)
    const comment = `# ${change.words.replaceAll(/\s+/g, ' ')}`
    return patch === undefined ? [comment] : [comment, patchCommand(patch)]
  })
}

/** `podgroups` without an API group means all kinds of that name. */
function apisOf({ type }: NamedKind): readonly string[] {
  return type.group === podGroupApis[0] ? podGroupApis : [type.group]
}

/** Answers questions about one snapshot. */
class Explaining {
  readonly #study: Study
  readonly #flags: ChosenFlags
  readonly #signal: AbortSignal
  readonly #pods: PodExplainer
  readonly #groups: PodGroupExplainer

  constructor(study: Study, flags: ChosenFlags, signal: AbortSignal) {
    this.#study = study
    this.#flags = flags
    this.#signal = signal
    this.#pods = new PodExplainer(study)
    this.#groups = new PodGroupExplainer(study)
  }

  /** All objects of a kind that the flags select; for pods, only the pending ones. */
  all(kind: NamedKind): readonly NamedTarget[] {
    if (podGroupNamedKinds.includes(kind)) return this.#allGroups(kind)
    if (workloadKinds.includes(kind)) return this.#allWorkloads(kind)
    const { nodeClaims, nodePools, nodes } = this.#study.operator.caches
    const objects: readonly KubeObject[] =
      kind === podKind
        ? this.#pods.waiting()
        : kind === nodeKind
          ? nodes.list().filter(({ metadata: { name } }) => this.#mayBeAsked(name))
          : kind === nodeClaimKind
            ? nodeClaims.list().filter(({ status }) => this.#mayBeAsked(status?.nodeName ?? ''))
            : kind === requestKind
              ? requestsOf(this.#study)
              : nodePools.list()
    return this.#selected(objects).map(({ metadata: { name, namespace } }) => ({
      kind,
      name,
      ...(namespace !== undefined && { namespace }),
    }))
  }

  /** With --stuck, only nodes with blocked pods are looked at, as that is cheap to tell. */
  #mayBeAsked(nodeName: string): boolean {
    const { podsOnNodes } = this.#study.operator.state
    return this.#flags.stuck !== true || podsOnNodes.of(nodeName).blocking !== undefined
  }

  async waitingPods(): Promise<readonly ExplainedPod[]> {
    return await this.#pods.explained(this.#selected(this.#pods.waiting()))
  }

  async answers(targets: readonly NamedTarget[]): Promise<readonly Answer[]> {
    const answers: Answer[] = []
    for (const target of targets) {
      const answer = await this.answer(target)
      if (this.#flags.stuck !== true || answer.isStuck === true) answers.push(answer)
    }
    return answers
  }

  async answer(target: NamedTarget & { readonly namespace?: string }): Promise<Answer> {
    const { kind, name } = target
    if (kind === podKind) return await this.#pod(target)
    if (kind === nodePoolKind) return await this.#nodePool(name)
    if (kind === requestKind) return await this.#request(target)
    if (podGroupNamedKinds.includes(kind)) return await this.#podGroup(target)
    if (workloadKinds.includes(kind)) return await this.#workload(target)
    const isNode = kind === nodeKind
    const found = await explainNode(this.#study, isNode ? 'node' : 'nodeClaim', name, this.#signal)
    if (found === undefined) throw notFound(kind, name)
    const word = isNode ? 'NodeExplanation' : 'NodeClaimExplanation'
    return {
      lines: nodeText(found),
      object: nodeDocument(word, name, found),
      isStuck: found.stuck !== undefined,
    }
  }

  async #pod({ name, namespace }: NamedTarget & { readonly namespace?: string }): Promise<Answer> {
    const space = namespace ?? this.#flags.namespace
    const pod = this.#study.operator.caches.pods.get({ namespace: space, name })
    if (pod === undefined) throw notFound(podKind, name)
    const found = await this.#pods.explain(pod, { missesMs })
    return {
      lines: podText(found, { all: this.#flags.all === true }),
      object: podDocument(found),
      patches: patchLines(pod, found, this.#flags.all === true),
      untried: found.pending?.untried ?? 0,
    }
  }

  async #request({ name, namespace }: NamedTarget & { readonly namespace?: string }): Promise<Answer> {
    const key = { namespace: namespace ?? this.#flags.namespace, name }
    const found = await explainRequest(this.#study, key, { missesMs })
    if (found === undefined) throw notFound(requestKind, name)
    const blocked = found.blocked ?? []
    return {
      lines: requestText(found, { all: this.#flags.all === true }),
      object: requestDocument(found),
      untried: blocked.reduce((sum, { pending }) => sum + pending.untried, 0),
    }
  }

  #allGroups(kind: NamedKind): readonly NamedTarget[] {
    const { allNamespaces, namespace } = this.#flags
    return this.#groups
      .all()
      .filter(([api, space]) => apisOf(kind).includes(api) && (allNamespaces === true || space === namespace))
      .map(([api, space, name]) => ({
        kind: podGroupNamedKinds.find(({ type }) => type.group === api) ?? kind,
        name,
        namespace: space,
      }))
  }

  #allWorkloads(kind: NamedKind): readonly NamedTarget[] {
    const { allNamespaces, namespace: own } = this.#flags
    return workloadsOf(this.#study, kind.type.kind)
      .filter(({ namespace }) => allNamespaces === true || namespace === own)
      .map(({ name, namespace }) => ({ kind, name, ...(namespace !== undefined && { namespace }) }))
  }

  async #podGroup({ kind, name, namespace }: NamedTarget & { readonly namespace?: string }): Promise<Answer> {
    const space = namespace ?? this.#flags.namespace
    for (const api of apisOf(kind)) {
      const found = await this.#groups.explain(api, space, name, { missesMs })
      if (found === undefined) continue
      const all = this.#flags.all === true
      return {
        lines: podGroupText(found, { all }),
        object: podGroupDocument(found),
        untried: found.pending?.untried ?? 0,
      }
    }
    throw notFound(kind, name)
  }

  async #nodePool(name: string): Promise<Answer> {
    const decision = await this.#study.decide()
    const found = await explainNodePool(this.#study, name, this.#signal, decision)
    if (found === undefined) throw notFound(nodePoolKind, name)
    return { lines: nodePoolText(found), object: nodePoolDocument(found) }
  }

  /** @throws KubectlError if no pod of it is there. */
  async #workload({ kind, name, namespace }: NamedTarget & { readonly namespace?: string }): Promise<Answer> {
    const space = namespace ?? this.#flags.namespace
    const found = await explainWorkload(this.#study, { kind: kind.type.kind, namespace: space, name })
    if (found === undefined)
      throw new KubectlError(`error: no pod of ${kind.singular}/${name} is in namespace ${space}`)
    return { lines: workloadText(found), object: workloadDocument(found) }
  }

  #selected<T extends KubeObject>(objects: readonly T[]): readonly T[] {
    const { allNamespaces, namespace } = this.#flags
    const isSelected = selects(this.#flags)
    return objects.filter(
      (object) =>
        (allNamespaces === true || [undefined, namespace].includes(object.metadata.namespace)) &&
        isSelected(object),
    )
  }
}
