import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import type { FieldHint, TextProblem } from '../../answers/facts.ts'
import type { ObjectAnswer } from '../../answers/object.ts'
import type { WhatIfAnswer } from '../../answers/simulate.ts'
import { objectQuery, objectRefOf, objectText } from '../../model/object-ref.ts'
import { ActionButton } from '../parts/act.tsx'
import { Answer, type Asked, useAnswer } from '../parts/answer.tsx'
import { saveText } from '../parts/copy.tsx'
import { Outcome } from '../parts/outcome.tsx'
import { Start } from '../parts/start.tsx'
import { unifiedHunks } from '@tenon/api/unified-diff'
import { ask, askWith } from '../state/questions.ts'
import { chosen, go } from '../state/router.ts'
import { mayAct, rowsOf } from '../state/store.ts'
import { placeIn } from '../state/yaml-place.ts'

/** Manifests to edit, and the effect of the change. */
export function WhatIfView(): JSX.Element {
  const names = rowsOf('pools')
    .map(({ name }) => name)
    .toSorted()
  const name = chosen('nodepool') ?? names[0]
  const [kind = '', group = '', namespace = '', object = ''] = ['kind', 'group', 'namespace', 'name'].map(
    chosen,
  )
  const ref = objectRefOf(new URLSearchParams({ kind, group, namespace, name: object }))
  const manifest = useAnswer<{ readonly text: string }>(
    ref !== undefined || name === undefined
      ? undefined
      : `/api/manifest?nodepool=${encodeURIComponent(name)}`,
  )
  const read = useAnswer<ObjectAnswer>(ref && `/api/object?${objectQuery(ref)}`)
  if (ref === undefined && name === undefined) return <Start />
  return (
    <>
      <div class="controls">
        <label>
          Begin with
          <select
            value={ref === undefined ? (name ?? '') : ''}
            onChange={(event) => {
              go(`/what-if?nodepool=${encodeURIComponent(event.currentTarget.value)}`)
            }}
          >
            {ref !== undefined && <option value="">{objectText(ref)}</option>}
            {names.map((each) => (
              <option key={each} value={each}>
                NodePool {each}
              </option>
            ))}
          </select>
        </label>
      </div>
      {ref !== undefined ? (
        <Answer asked={read} awaits="the object">
          {({ object: found }) => (
            <Editor
              key={objectText(ref)}
              name={ref.name}
              original={found.kind === 'read' ? found.yaml : ''}
              others={names}
            />
          )}
        </Answer>
      ) : (
        <Answer asked={manifest} awaits="the manifest of the NodePool">
          {({ text }) => <Editor key={name} name={name ?? ''} original={text} others={names} />}
        </Answer>
      )}
    </>
  )
}

const dayMs = 24 * 3_600_000

function Editor({
  name,
  original,
  others,
}: {
  readonly name: string
  readonly original: string
  /** NodePools that can be added. */
  readonly others: readonly string[]
}): JSX.Element {
  const [text, setText] = useState(original)
  const [asked, setAsked] = useState<Asked<WhatIfAnswer>>()
  const area = useRef<HTMLTextAreaElement>(null)
  const problems = useProblems(text)
  const hints = useAnswer<{ readonly fields: readonly FieldHint[] }>('/api/fields')
  const hasErrors = problems.some(({ severity }) => severity === 'error')
  const simulate = (forMs?: number) => {
    setAsked({ kind: 'waiting' })
    askWith<WhatIfAnswer>(`/api/simulate${forMs === undefined ? '' : `?for=${forMs}`}`, text).then(
      (answer) => setAsked({ kind: 'answered', answer }),
      (error: unknown) =>
        setAsked({ kind: 'failed', message: error instanceof Error ? error.message : String(error) }),
    )
  }
  const goTo = ({ column, line }: TextProblem) => {
    const before = text.split('\n').slice(0, line - 1)
    const at = before.reduce((sum, each) => sum + each.length + 1, 0) + column - 1
    area.current?.focus()
    area.current?.setSelectionRange(at, at)
  }
  return (
    <div class="two wide-left">
      <section>
        <h2>Manifests</h2>
        <p class="quiet">Paste others, of any kind, below a line of three dashes.</p>
        <AddManifest others={others} add={(more) => setText(joined(text, more))} />
        <YamlArea
          area={area}
          text={text}
          setText={setText}
          problems={problems}
          hints={hints.kind === 'answered' ? hints.answer.fields : []}
        />
        <ul class="yaml-problems" aria-live="polite">
          {problems.map((problem) => (
            <li
              key={`${problem.line}:${problem.column} ${problem.field} ${problem.message}`}
              class={problem.severity}
            >
              <button type="button" class="link" onClick={() => goTo(problem)}>
                {problem.line}:{problem.column}
              </button>{' '}
              {problem.severity}: {problem.field !== '' && <code>{problem.field}</code>} {problem.message}
              {problem.fix !== undefined && `; ${problem.fix}`}
            </li>
          ))}
        </ul>
        <p class="buttons">
          <button type="button" class="primary" disabled={hasErrors} onClick={() => simulate()}>
            Simulate
          </button>
          <button type="button" disabled={hasErrors} onClick={() => simulate(dayMs)}>
            Play 24 h
          </button>
          <button
            type="button"
            disabled={text === original}
            onClick={() =>
              saveText(
                `${name}.diff`,
                'text/x-diff',
                `--- a/${name}.yaml\n+++ b/${name}.yaml\n${unifiedHunks(original, text)}`,
              )
            }
          >
            Export diff
          </button>
          <button type="button" disabled={text === original} onClick={() => setText(original)}>
            Undo all
          </button>
          {text !== original && !hasErrors && (
            <ActionButton request={{ kind: 'apply', manifest: text }}>Apply</ActionButton>
          )}
        </p>
        {!mayAct.value && <p class="quiet">Nothing here changes the cluster.</p>}
      </section>
      <section>
        <h2>What would come of it</h2>
        {asked === undefined ? (
          <p class="empty">Change the manifest, then simulate.</p>
        ) : (
          <Answer asked={asked} awaits="the decision with and without the change">
            {(answer) => <Outcome answer={answer} />}
          </Answer>
        )}
      </section>
    </div>
  )
}

/** One more document. */
function joined(text: string, more: string): string {
  return text.trim() === '' ? more : `${text.replace(/\n*$/, '\n')}---\n${more}`
}

function AddManifest({
  add,
  others,
}: {
  readonly add: (text: string) => void
  readonly others: readonly string[]
}): JSX.Element {
  const [failure, setFailure] = useState('')
  const pick = (name: string) => {
    ask<{ readonly text: string }>(`/api/manifest?nodepool=${encodeURIComponent(name)}`).then(
      ({ text }) => add(text),
      (error: unknown) => setFailure(error instanceof Error ? error.message : String(error)),
    )
  }
  return (
    <p>
      <label>
        Add{' '}
        <select value="" onChange={(event) => pick(event.currentTarget.value)}>
          <option value="">a NodePool</option>
          {others.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      </label>{' '}
      {failure !== '' && <span class="failure">{failure}</span>}
    </p>
  )
}

const checkAfterMs = 300

/** Problems of the text, checked shortly after the last key. */
function useProblems(text: string): readonly TextProblem[] {
  const [problems, setProblems] = useState<readonly TextProblem[]>([])
  useEffect(() => {
    const over = new AbortController()
    const timer = setTimeout(() => {
      askWith<{ readonly problems: readonly TextProblem[] }>('/api/check', text, over.signal).then(
        (answer) => setProblems(answer.problems),
        () => undefined,
      )
    }, checkAfterMs)
    return () => {
      clearTimeout(timer)
      over.abort()
    }
  }, [text])
  return problems
}

const mostHints = 12

function YamlArea({
  area,
  hints,
  problems,
  setText,
  text,
}: {
  readonly area: { readonly current: HTMLTextAreaElement | null }
  readonly hints: readonly FieldHint[]
  readonly problems: readonly TextProblem[]
  readonly setText: (text: string) => void
  readonly text: string
}): JSX.Element {
  const [offset, setOffset] = useState<number>()
  const [at, setAt] = useState(0)
  const offered = useMemo(
    () => (offset === undefined ? [] : offeredAt(text, offset, hints)),
    [text, offset, hints],
  )
  const marked = new Set(problems.map(({ line }) => line))
  const take = (offer: Offer) => {
    if (offset === undefined) return
    const start = offset - offer.typed.length
    setText(`${text.slice(0, start)}${offer.insert}${text.slice(offset)}`)
    setOffset(undefined)
    requestAnimationFrame(() => {
      area.current?.focus()
      area.current?.setSelectionRange(start + offer.insert.length, start + offer.insert.length)
    })
  }
  const onKeyDown = (event: KeyboardEvent & { readonly currentTarget: HTMLTextAreaElement }) => {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault()
      setAt(0)
      setOffset(event.currentTarget.selectionStart)
      return
    }
    if (offered.length === 0) return
    const offer = offered[at]
    if (event.key === 'ArrowDown') setAt((at + 1) % offered.length)
    else if (event.key === 'ArrowUp') setAt((at + offered.length - 1) % offered.length)
    else if (event.key === 'Enter' && offer !== undefined) take(offer)
    else if (event.key === 'Escape') setOffset(undefined)
    else return
    event.preventDefault()
  }
  return (
    <div class="yaml">
      <div class="line-numbers" aria-hidden="true">
        {text.split('\n').map((_, index) => (
          <span key={index} class={marked.has(index + 1) ? 'marked' : ''}>
            {index + 1}
          </span>
        ))}
      </div>
      <textarea
        ref={area}
        aria-label="Manifests. Control and space offer fields of NodePools."
        aria-describedby="yaml-hint"
        spellcheck={false}
        wrap="off"
        rows={text.split('\n').length + 1}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value)
          if (offset !== undefined) setOffset(event.currentTarget.selectionStart)
        }}
        onKeyDown={onKeyDown}
        onBlur={() => setOffset(undefined)}
      />
      <p id="yaml-hint" class="quiet">
        Ctrl and Space offer fields.
      </p>
      {offered.length > 0 && (
        <ul class="offers" role="listbox" aria-label="Fields">
          {offered.map((offer, index) => (
            <li
              key={offer.label}
              role="option"
              aria-selected={index === at}
              onPointerDown={(event) => {
                event.preventDefault()
                take(offer)
              }}
            >
              <code>{offer.label}</code> <span class="quiet">{offer.description}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

interface Offer {
  readonly label: string
  readonly insert: string
  readonly typed: string
  readonly description: string
}

function offeredAt(text: string, offset: number, hints: readonly FieldHint[]): readonly Offer[] {
  const { key, parent, typed } = placeIn(text, offset)
  const prefix = parent === '' ? '' : `${parent}.`
  if (key !== undefined)
    return (hints.find(({ path }) => path === `${prefix}${key}`)?.values ?? [])
      .filter((value) => value.startsWith(typed))
      .map((value) => ({ label: value, insert: value, typed, description: '' }))
  return hints
    .filter(({ path }) => path.startsWith(prefix + typed) && !/[.[]/.test(path.slice(prefix.length)))
    .slice(0, mostHints)
    .map(({ description = '', path }) => {
      const label = path.slice(prefix.length)
      return { label, insert: `${label}: `, typed, description }
    })
}
