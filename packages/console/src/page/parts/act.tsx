import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { pauseAction } from '../../actions/pausing.ts'
import type { ActionRequest } from '../../actions/request.ts'
import { askWith } from '../state/questions.ts'
import { mayAct, rowsOf } from '../state/store.ts'
import { Dialog } from './dialog.tsx'

type Stage =
  | { readonly kind: 'asking'; readonly command: string }
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly text: string }
  | { readonly kind: 'failed'; readonly text: string }

/** The action that is asked about, runs or has ended; what it acts on may be gone from the page by then. */
const shown = signal<{
  readonly title: string
  readonly stage: Stage
  readonly run: (command: string) => void
}>()

/** Asks for the command of an action and shows it. */
function begin(request: ActionRequest, title: string): void {
  const show = (stage: Stage) => {
    shown.value = { title, stage, run }
  }
  const failed = (error: unknown) => {
    show({ kind: 'failed', text: error instanceof Error ? error.message : String(error) })
  }
  const run = (command: string) => {
    show({ kind: 'running' })
    askWith<{ readonly done: string }>('/api/actions', JSON.stringify({ request, agreed: command })).then(
      ({ done }) => show({ kind: 'done', text: done }),
      failed,
    )
  }
  askWith<{ readonly command: string }>('/api/actions', JSON.stringify({ request })).then(
    ({ command }) => show({ kind: 'asking', command }),
    failed,
  )
}

/** A button that shows its command, asks for confirmation and runs it. Not rendered if the page is read-only. */
export function ActionButton({
  request,
  children,
  isPrimary = false,
}: {
  readonly request: ActionRequest
  readonly children: string
  /** Whether it is what most users come for. */
  readonly isPrimary?: boolean
}): JSX.Element | null {
  if (!mayAct.value) return null
  return (
    <button type="button" class={isPrimary ? 'primary' : undefined} onClick={() => begin(request, children)}>
      {children}…
    </button>
  )
}

/** Shows the action whose button was pressed last. */
export function ActionDialog(): JSX.Element | null {
  if (shown.value === undefined) return null
  const { title, stage, run } = shown.value
  const close = () => {
    shown.value = undefined
  }
  return (
    <Dialog title={title} onClose={close}>
      <ActionStage stage={stage} run={run} cancel={close} />
    </Dialog>
  )
}

/** Ends or begins a pause of a NodePool or of the cluster. */
export function PauseButton({ nodePool }: { readonly nodePool?: string }): JSX.Element {
  const request = pauseAction(rowsOf('pools'), nodePool)
  const isOfAll = nodePool !== undefined && request.nodePool === undefined
  return (
    <ActionButton request={request}>
      {request.kind === 'pause' ? 'Pause' : isOfAll ? 'Resume the cluster' : 'Resume'}
    </ActionButton>
  )
}

function ActionStage({
  stage,
  run,
  cancel,
}: {
  readonly stage: Stage
  readonly run: (command: string) => void
  readonly cancel: () => void
}): JSX.Element {
  switch (stage.kind) {
    case 'asking':
      return (
        <>
          <p>This will run:</p>
          <pre class="plain">{stage.command}</pre>
          <p class="buttons">
            <button type="button" class="primary" onClick={() => run(stage.command)}>
              Run it
            </button>
            <button type="button" onClick={cancel}>
              Cancel
            </button>
          </p>
        </>
      )
    case 'running':
      return <p role="status">Running…</p>
    case 'done':
      return <p role="status">{stage.text}</p>
    case 'failed':
      return (
        <p role="alert" class="failure">
          {stage.text}
        </p>
      )
  }
}
