/** Combines what topology rules propose for a claim: one domain of each key, or several where any will do. */
import type { Proposal, TopologyGroup } from './group.ts'

/** The domains that topology rules leave to a claim, one entry per key. */
export type Narrowing = readonly { readonly key: string; readonly domains: readonly string[] }[]

/** One way to satisfy all rules about domains. */
export interface DomainChoice {
  readonly narrowing: Narrowing
  /** The rank of the chosen domain in each rule, in order of the rules; the lowest is the best. */
  readonly ranks: readonly number[]
}

/** Domains of one key that are left. */
export interface KeyDomains {
  readonly key: string
  readonly domains: readonly string[]
  /** For each rule that must settle on one domain: the rank of each domain. */
  readonly ranks: readonly (readonly number[])[]
}

export const unrestricted: readonly DomainChoice[] = [{ narrowing: [], ranks: [] }]
/** Most choices for one pod on one candidate; rules over several keys multiply them. */
const mostChoices = 1024

export function keyDomains(
  { rule, domains: names }: TopologyGroup,
  { domains, ranks }: Proposal,
): KeyDomains {
  return {
    key: rule.key,
    domains: domains.map((id) => names.name(id)),
    ranks: ranks === undefined ? [] : [ranks],
  }
}

/** The domains that both leave. */
export function commonDomains(a: KeyDomains, b: KeyDomains): KeyDomains {
  const kept = (of: KeyDomains, other: KeyDomains) =>
    of.domains.flatMap((domain, index) => (other.domains.includes(domain) ? [index] : []))
  const [ofA, ofB] = [kept(a, b), kept(b, a)]
  const ranksAt = (ranks: KeyDomains['ranks'], indexes: readonly number[]) =>
    ranks.map((each) => indexes.map((index) => each[index] as number))
  return {
    key: a.key,
    domains: ofA.map((index) => a.domains[index] as string),
    ranks: [...ranksAt(a.ranks, ofA), ...ranksAt(b.ranks, ofB)],
  }
}

/** Each way to settle on one domain of every key that has ranks; the best ones if there are too many. */
export function combinations(keys: Iterable<KeyDomains>): readonly DomainChoice[] {
  let choices = unrestricted
  for (const { key, domains, ranks } of keys) {
    if (ranks.length === 0) {
      choices = choices.map((choice) => ({ ...choice, narrowing: [...choice.narrowing, { key, domains }] }))
      continue
    }
    const ranked = domains.map((domain, index) => ({
      domain,
      ranks: ranks.map((each) => each[index] as number),
    }))
    if (ranked.length * choices.length > mostChoices) ranked.sort((a, b) => compareRanks(a.ranks, b.ranks))
    choices = choices
      .flatMap((choice) =>
        ranked.map((each) => ({
          narrowing: [...choice.narrowing, { key, domains: [each.domain] }],
          ranks: [...choice.ranks, ...each.ranks],
        })),
      )
      .slice(0, mostChoices)
  }
  return choices
}

/** Lower ranks first; the ranks of earlier rules decide before those of later ones. */
export function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, rank] of a.entries()) {
    const difference = rank - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
