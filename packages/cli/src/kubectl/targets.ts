/** Parses `TYPE`, `TYPE NAME…` and `TYPE/NAME…` as kubectl does. */
import { KubectlError } from '../errors.ts'
import { askedKinds, isNameOf, kindNamed, type NamedKind, nodePoolKind } from './kinds.ts'

export interface NamedTarget {
  readonly kind: NamedKind
  readonly name: string
}

/** All objects of some kinds, or some objects by name. */
export type Targets =
  | { readonly kind: 'all'; readonly kinds: readonly NamedKind[] }
  | { readonly kind: 'named'; readonly targets: readonly NamedTarget[] }

export interface TargetFlags {
  readonly allNamespaces?: true
  readonly selector?: string
  readonly fieldSelector?: string
}

/**
 * Parses the arguments of a command.
 * @throws KubectlError if they name no kind or an unknown one, or mix the two forms.
 */
export function targetsOf(
  args: readonly string[],
  flags: TargetFlags = {},
  among: readonly NamedKind[] = askedKinds,
): Targets {
  if (args.length === 0)
    throw new KubectlError(
      `error: name what to look at: TYPE, TYPE NAME or TYPE/NAME; types are ${among.map(({ type }) => type.plural).join(', ')}`,
    )
  const targets = namedTargets(args, among)
  if (targets === undefined) return { kind: 'all', kinds: kindsIn(args[0] ?? '', among) }
  if (flags.selector !== undefined || flags.fieldSelector !== undefined)
    throw new KubectlError('error: name cannot be provided when a selector is specified')
  if (flags.allNamespaces === true && targets.some(({ kind }) => kind.type.namespaced))
    throw new KubectlError('error: a resource cannot be retrieved by name across all namespaces')
  return { kind: 'named', targets }
}

/** NodePools by `NAME…`, `nodepool NAME…` or `nodepool/NAME…`; empty if none is named. */
export function nodePoolNames(args: readonly string[]): readonly string[] {
  const isTyped = isNameOf(nodePoolKind, args[0] ?? '') || args.some((arg) => arg.includes('/'))
  if (!isTyped) return args
  const read = targetsOf(args, {}, [nodePoolKind])
  return read.kind === 'all' ? [] : read.targets.map(({ name }) => name)
}

function namedTargets(
  args: readonly string[],
  among: readonly NamedKind[],
): readonly NamedTarget[] | undefined {
  const pairs = args.filter((arg) => arg.includes('/'))
  if (pairs.length === args.length) return args.map((arg) => targetIn(arg, among))
  if (pairs.length > 0)
    throw new KubectlError(
      `error: ${args.join(' ')} mixes TYPE NAME with TYPE/NAME: write every object as TYPE/NAME`,
    )
  const [types = '', ...names] = args
  if (names.length === 0) return undefined
  const kinds = kindsIn(types, among)
  return kinds.flatMap((kind) => names.map((name) => ({ kind, name })))
}

function kindsIn(text: string, among: readonly NamedKind[]): readonly NamedKind[] {
  return [...new Set(text.split(',').map((each) => kindNamed(each, among)))]
}

function targetIn(arg: string, among: readonly NamedKind[]): NamedTarget {
  const [type = '', name = '', ...more] = arg.split('/')
  if (type === '' || name === '' || more.length > 0)
    throw new KubectlError(`error: ${arg} is not of the form TYPE/NAME`)
  return { kind: kindNamed(type, among), name }
}
