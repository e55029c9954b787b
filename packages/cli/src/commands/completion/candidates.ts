/** Completions of the last word of a command line. */
import type { Command, Option } from 'commander'
import {
  askedKinds,
  explainedKinds,
  kindNamed,
  listedKinds,
  type NamedKind,
  nodeClaimKind,
  nodeKind,
  nodePoolKind,
} from '../../kubectl/kinds.ts'

/** Cluster-scoped kinds that `simulate --delete` accepts. */
const deletable: readonly NamedKind[] = [nodeKind, nodeClaimKind, nodePoolKind]

/** Names from a cluster; empty if it cannot be reached. */
export interface ClusterNames {
  objects(kind: NamedKind): Promise<readonly string[]>
  namespaces(): Promise<readonly string[]>
}

/** @param words the words after `tenon`; the last one is incomplete, perhaps empty. */
export async function candidates(
  program: Command,
  words: readonly string[],
  names: ClusterNames,
): Promise<readonly string[]> {
  const typed = words.at(-1) ?? ''
  const { command, positionals, awaiting } = readSoFar(program, words.slice(0, -1))
  const found = await all(command, { typed, positionals, awaiting }, names)
  return found.filter((each) => each.startsWith(typed)).toSorted()
}

interface Place {
  readonly typed: string
  readonly positionals: readonly string[]
  /** The option whose value comes next. */
  readonly awaiting: Option | undefined
}

async function all(command: Command, place: Place, names: ClusterNames): Promise<readonly string[]> {
  const { typed, positionals, awaiting } = place
  if (awaiting !== undefined) return await valuesOf(awaiting, typed, names)
  if (typed.startsWith('-'))
    return command.options
      .filter(({ hidden }) => !hidden)
      .flatMap(({ long }) => (long === null || long === undefined ? [] : [long]))
  const own = positionals.length === 0 ? command.commands.map((each) => each.name()) : []
  const visible = own.filter((name) => !name.startsWith('__'))
  if (typed.includes('/')) return await pairs(typed, names)
  const choices = command.registeredArguments[positionals.length]?.argChoices ?? []
  const of = command.registeredArguments[0]?.name()
  if (of === 'nodepool') return await poolTargets(positionals, names)
  if (of !== 'type') return [...visible, ...choices]
  const [type] = positionals
  if (type === undefined) return [...visible, ...new Set(kindsOf(command).map((each) => each.type.plural))]
  const kind = known(type)
  return kind === undefined ? [] : await names.objects(kind)
}

function kindsOf(command: Command): readonly NamedKind[] {
  switch (command.name()) {
    case 'explain':
      return explainedKinds
    case 'get':
      return listedKinds
    default:
      return askedKinds
  }
}

/** `nodepool/NAME` and `NAME`, or names alone after a type or a name. */
async function poolTargets(positionals: readonly string[], names: ClusterNames): Promise<readonly string[]> {
  const found = await names.objects(nodePoolKind)
  const [type = ''] = positionals
  const typed = found.map((name) => `nodepool/${name}`)
  return type === '' ? [...found, ...typed] : type.includes('/') ? typed : found
}

async function pairs(typed: string, names: ClusterNames): Promise<readonly string[]> {
  const type = typed.slice(0, typed.indexOf('/'))
  const kind = known(type)
  if (kind === undefined) return []
  return (await names.objects(kind)).map((name) => `${type}/${name}`)
}

async function valuesOf(
  { argChoices, long }: Option,
  typed: string,
  names: ClusterNames,
): Promise<readonly string[]> {
  if (argChoices !== undefined) return argChoices
  switch (long ?? '') {
    case '--namespace':
      return await names.namespaces()
    case '--node':
      return await names.objects(nodeKind)
    case '--nodepool':
      return await names.objects(nodePoolKind)
    case '--from':
    case '--to':
      return (await names.objects(nodePoolKind)).map((name) => `nodepool/${name}`)
    case '--delete':
      return typed.includes('/') ? await pairs(typed, names) : deletable.map((kind) => `${kind.singular}/`)
    case '--output':
      return ['json', 'name', 'wide', 'yaml']
    default:
      return []
  }
}

function known(type: string): NamedKind | undefined {
  try {
    return kindNamed(type, [...explainedKinds, ...listedKinds])
  } catch {
    // The word is not a type yet.
    return undefined
  }
}

function readSoFar(
  program: Command,
  words: readonly string[],
): {
  readonly command: Command
  readonly positionals: readonly string[]
  readonly awaiting: Option | undefined
} {
  let command = program
  const positionals: string[] = []
  let awaiting: Option | undefined
  for (const word of words) {
    if (awaiting !== undefined) {
      awaiting = undefined
      continue
    }
    if (word.startsWith('-')) {
      const option = command.options.find(({ long, short }) => long === word || short === word)
      if (option !== undefined && (option.required || option.optional)) awaiting = option
      continue
    }
    const next = positionals.length === 0 ? command.commands.find((each) => each.name() === word) : undefined
    if (next === undefined) positionals.push(word)
    else command = next
  }
  return { command, positionals, awaiting }
}
