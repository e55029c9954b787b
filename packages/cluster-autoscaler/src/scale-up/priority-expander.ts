/** Chooses groups by user-defined priorities of id patterns (cluster-autoscaler.md 4.5). */
import { RE2JS } from 're2js'
import { parse } from 'yaml'
import type { ConfigMap } from '@tenon/api'
import { messageOf } from '@tenon/runtime'
import type { EventSink } from '../model.ts'
import type { Expander } from './expanders.ts'
import type { ExpansionOption } from './option.ts'

/** Lower priorities never win. */
const leastPriority = -1

export interface PrioritySources {
  /** The current ConfigMap; undefined if it does not exist or cannot be read. */
  readonly configMap: () => ConfigMap | undefined
  readonly events: EventSink
}

interface Rule {
  readonly priority: number
  readonly patterns: readonly RE2JS[]
}

/** Keeps the groups of the highest priority; all if the ConfigMap is invalid or nothing matches. */
export function priorityExpander({ configMap, events }: PrioritySources): Expander {
  return (options) => {
    const map = configMap()
    if (map === undefined) return Promise.resolve(options)
    const warn = (reason: string, message: string) => {
      events.object(map, 'Warning', reason, message)
    }
    const text = map.data?.['priorities']
    const invalid = (problem: string) => {
      warn('PriorityConfigMapInvalid', `${problem}. Ignoring update.`)
      return Promise.resolve(options)
    }
    if (text === undefined)
      return invalid("Wrong configmap for priority expander, doesn't contain priorities key")
    const rules = readPriorities(text)
    if ('problem' in rules) return invalid(`Wrong configuration for priority expander: ${rules.problem}`)
    return Promise.resolve(highest(options, rules.rules, warn))
  }
}

function highest(
  options: readonly ExpansionOption[],
  rules: readonly Rule[],
  warn: (reason: string, message: string) => void,
): readonly ExpansionOption[] {
  let best = leastPriority
  let chosen: ExpansionOption[] = []
  for (const option of options) {
    const matching = rules.filter(({ patterns }) =>
      patterns.some((each) => each.matcher(option.groupId).find()),
    )
    if (matching.length === 0) {
      warn(
        'PriorityConfigMapNotMatchedGroup',
        `Priority expander: node group ${option.groupId} not found in priority expander configuration. The group won't be used.`,
      )
      continue
    }
    const priority = Math.max(...matching.map((each) => each.priority))
    if (priority < best || priority < leastPriority) continue
    if (priority > best) chosen = []
    best = priority
    chosen.push(option)
  }
  if (chosen.length > 0) return chosen
  warn(
    'PriorityConfigMapNoGroupMatched',
    'Priority expander: no priorities info found for any of the expansion options. No options filtered.',
  )
  return options
}

/** Parses the YAML of key `priorities`: lists of patterns by priority. */
function readPriorities(text: string): { readonly rules: readonly Rule[] } | { readonly problem: string } {
  let document: unknown
  try {
    document = parse(text)
  } catch (error) {
    return {
      problem: `key "priorities" is not YAML: ${messageOf(error)}`,
    }
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    return { problem: 'key "priorities" is not a map from priorities to lists of regular expressions' }
  const rules: Rule[] = []
  for (const [key, list] of Object.entries(document)) {
    const priority = Number(key)
    if (!Number.isInteger(priority)) return { problem: `priority "${key}" is not an integer` }
    if (!Array.isArray(list)) return { problem: `priority ${key} has no list of regular expressions` }
    const patterns: RE2JS[] = []
    for (const pattern of list as readonly unknown[]) {
      if (typeof pattern !== 'string')
        return { problem: `priority ${key}: ${JSON.stringify(pattern)} is not text` }
      try {
        patterns.push(RE2JS.compile(pattern))
      } catch {
        return { problem: `priority ${key}: "${pattern}" is not a regular expression` }
      }
    }
    rules.push({ priority, patterns })
  }
  return rules.length === 0 ? { problem: 'key "priorities" holds no priorities' } : { rules }
}
