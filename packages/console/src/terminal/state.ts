/** The state of the viewer, and how keys change it. Pure: effects are values. */
import { ownValue } from '@tenon/api'
import type { CostDimension } from '@tenon/ask'
import type { Action, Target } from '../actions/request.ts'
import type { Key } from './keys.ts'

export const tabs = ['nodes', 'claims', 'pools', 'pods', 'decisions', 'cost', 'groups'] as const
type Tab = (typeof tabs)[number]

/** A tab, or the rows that belong to one object. */
export interface Place {
  /** `onNode`: the pods of a node. */
  readonly tab: Tab | 'onNode'
  readonly pool?: string
  readonly claim?: string
  readonly node?: string
  readonly selected?: string
  readonly filter?: string
}

type SortKey = 'name' | 'age' | 'status' | 'load' | 'label'

export interface Sorting {
  readonly by: SortKey
  /** A value of a label. */
  readonly label?: string
  readonly isReversed: boolean
}

/** A text that replaces the table. */
export interface Detail {
  readonly title: string
  /** Printed above the others. */
  readonly lead?: readonly string[]
  /** Absent while it is being computed. */
  readonly lines?: readonly string[]
  readonly offset: number
}

/** An action that has to be confirmed. */
interface Asked {
  readonly command: string
  readonly action: Action
}

export interface ViewerState {
  readonly place: Place
  readonly earlier: readonly Place[]
  readonly sorting: Sorting
  readonly isWide: boolean
  readonly onlyFaults: boolean
  readonly costBy: CostDimension
  /** Input after `:` or `/`. */
  readonly typing?: { readonly mark: ':' | '/'; readonly text: string }
  readonly detail?: Detail
  readonly asked?: Asked
  /** A temporary message of one line. */
  readonly note?: string
}

/** Side effects of a key. */
export type Effect =
  | { readonly kind: 'quit' }
  | { readonly kind: 'explain' | 'yaml'; readonly target: Target }
  | { readonly kind: 'copy'; readonly text: string }
  | { readonly kind: 'act'; readonly action: Action }

export interface Step {
  readonly state: ViewerState
  readonly effect?: Effect
}

/** What a key refers to. */
export interface Surroundings {
  /** IDs of the rows in the order shown. */
  readonly ids: readonly string[]
  /** Rows per page. */
  readonly page: number
  /** Number of wrapped lines of the detail, on the current screen. */
  readonly detailLines: number
  /** Why nothing can be changed; undefined if actions are allowed. */
  readonly readOnly: string | undefined
  /** The command that does the same. */
  readonly commandOf: (action: Action) => string
  /** Text of the selected row that may be cut off in its line. */
  readonly about: readonly string[]
  /** The object of the selected row; undefined if there is none. */
  readonly target: Target | undefined
  /** Where Enter leads to. */
  readonly below: Place | undefined
  readonly isCordoned: boolean
  /** Pauses or resumes the selected NodePool, or the cluster. */
  readonly pausing: Action
  /** Why a filter is invalid; undefined if it is valid. */
  readonly filterProblem: (text: string) => string | undefined
}

export function startState(sorting: Sorting): ViewerState {
  return {
    place: { tab: 'nodes' },
    earlier: [],
    sorting,
    isWide: false,
    onlyFaults: false,
    costBy: 'nodepool',
  }
}

export function stepOf(state: ViewerState, key: Key, around: Surroundings): Step {
  const { note: _, ...quiet } = state
  if (key === 'ctrl-c') return { state, effect: { kind: 'quit' } }
  if (state.asked !== undefined) return answered(quiet, state.asked, key)
  if (state.typing !== undefined) return typed(quiet, key, around)
  if (state.detail !== undefined) return read(quiet, state.detail, key, around)
  return pressed(quiet, key, around)
}

function answered(asking: ViewerState, { action }: Asked, key: Key): Step {
  const { asked: _, ...state } = asking
  if (key === 'y' || key === 'Y') return { state, effect: { kind: 'act', action } }
  return { state: { ...state, note: 'nothing was changed' } }
}

function read(state: ViewerState, detail: Detail, key: Key, { detailLines, page }: Surroundings): Step {
  const { detail: _, ...closed } = state
  const most = Math.max(0, detailLines - page)
  const moves: Readonly<Record<string, number>> = {
    up: -1,
    k: -1,
    down: 1,
    j: 1,
    pageup: -page,
    left: -page,
    pagedown: page,
    right: page,
    home: -most,
    g: -most,
    end: most,
    G: most,
  }
  if (['esc', 'q', 'enter', 'd', 'y', '?'].includes(key)) return { state: closed }
  const move = ownValue(moves, key) ?? 0
  const offset = Math.min(most, Math.max(0, detail.offset + move))
  return { state: { ...state, detail: { ...detail, offset } } }
}

function typed(state: ViewerState, key: Key, around: Surroundings): Step {
  const { typing, ...rest } = state
  if (typing === undefined) return { state }
  const { mark, text } = typing
  if (key === 'esc') return { state: rest }
  if (key === 'backspace') {
    if (text === '') return { state: rest }
    return { state: { ...rest, typing: { mark, text: Array.from(text).slice(0, -1).join('') } } }
  }
  if (key !== 'enter') {
    const isLetter = Array.from(key).length === 1
    return { state: isLetter ? { ...rest, typing: { mark, text: text + key } } : state }
  }
  return mark === ':' ? commanded(rest, text.trim()) : filtered(rest, text, around)
}

function filtered(state: ViewerState, text: string, { filterProblem }: Surroundings): Step {
  const { filter: _, ...place } = state.place
  if (text === '') return { state: { ...state, place } }
  const problem = filterProblem(text)
  if (problem !== undefined) return { state: { ...state, note: problem } }
  return { state: { ...state, place: { ...place, filter: text } } }
}

const names: ReadonlyMap<string, Tab> = new Map([
  ...tabs.map((tab) => [tab, tab] as const),
  ['node', 'nodes'],
  ['no', 'nodes'],
  ['claim', 'claims'],
  ['nodeclaims', 'claims'],
  ['nodeclaim', 'claims'],
  ['nc', 'claims'],
  ['pool', 'pools'],
  ['nodepools', 'pools'],
  ['nodepool', 'pools'],
  ['np', 'pools'],
  ['group', 'groups'],
  ['nodegroups', 'groups'],
  ['nodegroup', 'groups'],
  ['ng', 'groups'],
  ['pod', 'pods'],
  ['po', 'pods'],
  ['pending', 'pods'],
  ['decision', 'decisions'],
  ['journal', 'decisions'],
])
const dimensions: readonly CostDimension[] = ['nodepool', 'namespace', 'owner', 'type', 'zone']

function commanded(state: ViewerState, command: string): Step {
  if (command === '') return { state }
  if (['q', 'quit', 'exit'].includes(command)) return { state, effect: { kind: 'quit' } }
  if (command === 'help') return { state: helped(state) }
  const [word = '', argument] = command.split(/\s+/)
  const costBy = dimensions.find((each) => each === argument)
  if (word === 'cost' && argument !== undefined && costBy === undefined)
    return { state: { ...state, note: `cost is by ${dimensions.join(', ')}` } }
  const tab = names.get(word)
  if (tab === undefined)
    return { state: { ...state, note: `no command "${command}": ${tabs.join(', ')}, help, quit` } }
  return { state: { ...gone(state, { tab }), ...(costBy !== undefined && { costBy }) } }
}

/** Goes to another place; Esc returns. */
function gone(state: ViewerState, place: Place): ViewerState {
  return { ...state, place, earlier: [...state.earlier, state.place].slice(-20) }
}

const sortKeys: Readonly<Record<string, SortKey>> = { N: 'name', A: 'age', S: 'status', C: 'load' }

function pressed(state: ViewerState, key: Key, around: Surroundings): Step {
  const moved = movement(key, around)
  if (moved !== undefined) return { state: selectedAt(state, around, moved) }
  const sortKey = ownValue(sortKeys, key)
  if (sortKey !== undefined) return { state: { ...state, sorting: sortedBy(state.sorting, sortKey) } }
  switch (key) {
    case 'q':
      return { state, effect: { kind: 'quit' } }
    case ':':
      return { state: { ...state, typing: { mark: ':', text: '' } } }
    case '/':
      return { state: { ...state, typing: { mark: '/', text: state.place.filter ?? '' } } }
    case '?':
      return { state: helped(state) }
    case 'esc':
      return { state: back(state) }
    case 'tab':
    case 'backtab':
      return { state: nextTab(state, key === 'tab' ? 1 : -1) }
    default:
      return opened(state, key, around)
  }
}

/** Keys that open the selected row, or change how it is shown. */
function opened(state: ViewerState, key: Key, around: Surroundings): Step {
  switch (key) {
    case 'enter':
      return around.below === undefined
        ? detailed(state, 'explain', around)
        : { state: gone(state, around.below) }
    case 'd':
      return detailed(state, 'explain', around)
    case 'y':
      return detailed(state, 'yaml', around)
    case 'ctrl-w':
      return { state: { ...state, isWide: !state.isWide } }
    case 'ctrl-z':
      return { state: { ...state, onlyFaults: !state.onlyFaults } }
    case 'b':
      return { state: state.place.tab === 'cost' ? { ...state, costBy: nextDimension(state.costBy) } : state }
    case 'c':
      return around.target === undefined
        ? { state: { ...state, note: 'this row has no object whose name could be copied' } }
        : {
            state: { ...state, note: `copied ${around.target.name}` },
            effect: { kind: 'copy', text: around.target.name },
          }
    default:
      return /^[1-7]$/.test(key)
        ? { state: gone(state, { tab: tabs[Number(key) - 1] ?? 'nodes' }) }
        : acted(state, key, around)
  }
}

function movement(key: Key, { ids, page }: Surroundings): number | undefined {
  switch (key) {
    case 'up':
    case 'k':
      return -1
    case 'down':
    case 'j':
      return 1
    case 'left':
    case 'pageup':
      return -page
    case 'right':
    case 'pagedown':
      return page
    case 'home':
    case 'g':
      return -ids.length
    case 'end':
    case 'G':
      return ids.length
    default:
      return undefined
  }
}

function selectedAt(state: ViewerState, { ids }: Surroundings, move: number): ViewerState {
  if (ids.length === 0) return state
  const at = Math.max(0, ids.indexOf(state.place.selected ?? ''))
  const selected = ids[Math.min(ids.length - 1, Math.max(0, at + move))]
  return { ...state, place: { ...state.place, ...(selected !== undefined && { selected }) } }
}

function sortedBy(sorting: Sorting, by: SortKey): Sorting {
  return { by, isReversed: sorting.by === by ? !sorting.isReversed : false }
}

/** Removes the filter first, then returns to the previous place. */
function back(state: ViewerState): ViewerState {
  const { filter, ...place } = state.place
  if (filter !== undefined) return { ...state, place }
  const last = state.earlier.at(-1)
  return last === undefined ? state : { ...state, place: last, earlier: state.earlier.slice(0, -1) }
}

function nextTab(state: ViewerState, by: number): ViewerState {
  const at = tabs.findIndex((tab) => tab === state.place.tab)
  const tab = tabs[(Math.max(0, at) + by + tabs.length) % tabs.length] ?? 'nodes'
  return gone(state, { tab })
}

function nextDimension(by: CostDimension): CostDimension {
  return dimensions[(dimensions.indexOf(by) + 1) % dimensions.length] ?? 'nodepool'
}

function detailed(state: ViewerState, kind: 'explain' | 'yaml', { about, target }: Surroundings): Step {
  const lead = kind === 'explain' && about.length > 0 ? about : undefined
  if (target === undefined) {
    if (lead === undefined) return { state }
    const title = state.place.tab === 'groups' ? 'node group' : 'decision'
    return { state: { ...state, detail: { title, lines: lead, offset: 0 } } }
  }
  const title = `${kind === 'yaml' ? 'yaml of' : 'explain'} ${target.kind}/${target.name}`
  const detail: Detail = { title, ...(lead !== undefined && { lead: [...lead, ''] }), offset: 0 }
  return { state: { ...state, detail }, effect: { kind, target } }
}

function acted(state: ViewerState, key: Key, around: Surroundings): Step {
  const action = actionOf(key, around)
  if (action === undefined) {
    const note = ownValue(unfit, key)
    return { state: note === undefined ? state : { ...state, note } }
  }
  if (around.readOnly !== undefined) return { state: { ...state, note: `read-only: ${around.readOnly}` } }
  return { state: { ...state, asked: { command: around.commandOf(action), action } } }
}

/** Messages of keys that do nothing here. */
const unfit: Readonly<Record<string, string>> = {
  u: 'only nodes are cordoned: choose one on tab 1',
  r: 'only nodes are drained: choose one on tab 1',
  'ctrl-d': 'this row has no object that could be deleted',
  l: 'there are no logs here: read them with kubectl logs',
  L: 'there are no logs here: read them with kubectl logs',
}

function actionOf(key: Key, { target, isCordoned, pausing }: Surroundings): Action | undefined {
  const node = target?.kind === 'node' ? target.name : undefined
  if (key === 'u' && node !== undefined) return { kind: isCordoned ? 'uncordon' : 'cordon', node }
  if (key === 'r' && node !== undefined) return { kind: 'drain', node }
  if (key === 'p') return pausing
  if (key === 'ctrl-d' && target !== undefined) return { kind: 'delete', target }
  return undefined
}

const help: readonly string[] = [
  'Tab, 1 to 7        next tab, a tab by number',
  ':                  command: nodes, claims, pools, pods, decisions, cost [by],',
  '                   groups, quit',
  '/                  filter: text, !text for all others, -l key=value by labels,',
  '                   -f for letters in order',
  'Enter              go down: pool, its claims, the node, its pods',
  'Esc                clear the filter, go back',
  'd                  explain the row, as tenon explain does, with its events',
  'y                  the object as YAML',
  'c                  copy the name',
  'N A S C            sort by name, age, status, load; again: the other way round',
  'Ctrl-W             wide: more columns',
  'Ctrl-Z             faults only',
  'b                  costs by another dimension',
  '←/→ PgUp PgDn g G  pages, first, last',
  '[ ] { } space      of a recording: back and on, ten times as far, play',
  'u r p Ctrl-D       cordon or uncordon, drain, pause or resume, delete: each asks;',
  '                   with --allow-actions',
  'q, Ctrl-C          quit',
  '',
  'A price of ? is not known; ?2 in the header counts two such nodes, in no sum.',
]

function helped(state: ViewerState): ViewerState {
  return { ...state, detail: { title: 'help', lines: help, offset: 0 } }
}
