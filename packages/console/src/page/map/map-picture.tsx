import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import type { PageNodeRow } from '../../model/page-view.ts'
import { priceText } from '../format.ts'
import { factsOf } from '../parts/node-table.tsx'
import { choose } from '../state/router.ts'
import { header, rowOf } from '../state/store.ts'
import { useDrawing, usePods, usePointer } from './drawing.ts'
import { type Group, type Grouping, layoutMap, type MapLayout, titleHeight } from './layout.ts'
import { type Camera, cellAt, fitting, zoomed } from './picture.ts'

interface Hover {
  readonly row: PageNodeRow
  readonly x: number
  readonly y: number
}

const panStep = 60
const noRows: readonly PageNodeRow[] = []

/** Cells on a canvas; pointer and keys move the map. */
export function MapPicture({
  rows,
  grouping,
  chosenId,
}: {
  readonly rows: readonly PageNodeRow[]
  readonly grouping: Grouping
  readonly chosenId: string | undefined
}): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [size, setSize] = useState({ width: 0, height: 0 })
  const [hover, setHover] = useState<Hover>()
  const [marked, setMarked] = useState<string>()
  const last = useRef<MapLayout>(undefined)
  const layout = useMemo(
    () =>
      layoutMap(
        // The size is only known after the first rendering.
        size.width === 0 ? noRows : rows,
        grouping,
        Math.max(0.4, size.width / Math.max(1, size.height)),
        last.current,
      ),
    [rows, grouping, size],
  )
  last.current = layout
  const [camera, setCamera] = useState<Camera>()
  // Shows the whole map until the user moves it.
  const view = useMemo(() => camera ?? fitting(layout, size.width, size.height), [camera, layout, size])
  const pods = usePods(layout.cells, view, size)
  useEffect(() => setCamera(undefined), [grouping])
  useEffect(() => {
    const element = canvas.current
    if (element === null) return undefined
    const fit = new ResizeObserver(() => {
      setSize({ width: element.clientWidth, height: element.clientHeight })
    })
    fit.observe(element)
    return () => fit.disconnect()
  }, [])
  const cells = useDrawing(canvas, { layout: layout.cells, view, pods, chosen: marked ?? chosenId, size })
  const zoom = (factor: number) => setCamera(zoomed(view, factor, size.width / 2, size.height / 2))
  const pan = (x: number, y: number) =>
    setCamera({ ...view, x: view.x + x / view.scale, y: view.y + y / view.scale })
  const mark = (step: number) => {
    const at = layout.cells.findIndex(({ row }) => row.id === marked)
    const next = layout.cells[(at + step + layout.cells.length) % Math.max(1, layout.cells.length)]
    setMarked(next?.row.id)
  }
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => pan(-panStep, 0),
    ArrowRight: () => pan(panStep, 0),
    ArrowUp: () => pan(0, -panStep),
    ArrowDown: () => pan(0, panStep),
    '+': () => zoom(1.5),
    '=': () => zoom(1.5),
    '-': () => zoom(1 / 1.5),
    '0': () => setCamera(undefined),
    n: () => mark(1),
    p: () => mark(-1),
    Enter: () => choose('node', marked),
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const act = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined
    if (act === undefined) return
    event.preventDefault()
    act()
  }
  const pointer = usePointer(view, setCamera, (x, y) => {
    const cell = cellAt(cells(), view, x, y)
    if (cell !== undefined) choose('node', cell.row.id)
  })
  const markedRow = marked === undefined ? undefined : rowOf('nodes', marked)
  return (
    <div class="map">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Map of ${rows.length} nodes. Arrow keys move it, plus and minus zoom, 0 shows all, n and p go from node to node, Enter explains one. The table shows the same.`}
        onKeyDown={onKeyDown}
        onWheel={(event) => {
          event.preventDefault()
          const box = event.currentTarget.getBoundingClientRect()
          const factor = Math.exp(-event.deltaY / 500)
          setCamera(zoomed(view, factor, event.clientX - box.left, event.clientY - box.top))
        }}
        {...pointer.handlers}
        onPointerMove={(event) => {
          pointer.handlers.onPointerMove(event)
          const box = event.currentTarget.getBoundingClientRect()
          const [x, y] = [event.clientX - box.left, event.clientY - box.top]
          const cell = pointer.isDragging() ? undefined : cellAt(cells(), view, x, y)
          setHover(cell && { row: cell.row, x, y })
        }}
        onPointerLeave={() => setHover(undefined)}
      />
      <div class="map-groups" aria-hidden="true">
        {layout.groups.map((group) => (
          <GroupTitle key={group.name} group={group} view={view} size={size} />
        ))}
      </div>
      {hover !== undefined && <MapHint hover={hover} width={size.width} />}
      <p class="hidden" role="status">
        {markedRow !== undefined && `${markedRow.name}: ${factsOf(markedRow)}`}
      </p>
      <div class="map-foot">
        <Legend />
        <ZoomButtons zoom={zoom} showAll={() => setCamera(undefined)} />
      </div>
    </div>
  )
}

function GroupTitle({
  group,
  size,
  view,
}: {
  readonly group: Group
  readonly view: Camera
  readonly size: { readonly width: number; readonly height: number }
}): JSX.Element | null {
  const left = Math.max(0, (group.x - view.x) * view.scale)
  const right = Math.min(size.width, (group.x + group.width - view.x) * view.scale)
  const high = Math.max(12, Math.min(18, titleHeight * view.scale))
  // Titles are directly above their cells at any scale.
  const top = (group.y + titleHeight - view.y) * view.scale - high
  if (right - left < 40 || top < -20 || top > size.height) return null
  return (
    <span
      style={{
        transform: `translate(${left}px, ${Math.max(0, top)}px)`,
        width: `${right - left}px`,
        height: `${high}px`,
      }}
    >
      {group.name} ({group.cells})
    </span>
  )
}

function MapHint({
  hover: { row, x, y },
  width,
}: {
  readonly hover: Hover
  readonly width: number
}): JSX.Element {
  const { currency = '' } = header.value ?? {}
  const isRight = x > width / 2
  return (
    <div
      class="hint"
      style={{
        top: `${y + 14}px`,
        ...(isRight ? { right: `${width - x + 14}px` } : { left: `${x + 14}px` }),
      }}
    >
      <strong>{row.name}</strong>
      <br />
      {[row.nodePool, row.instanceType, row.zone, row.capacityType]
        .filter((each) => each !== undefined)
        .join(' · ')}
      <br />
      {priceText(row.pricePerHour)} {currency} per hour
      <br />
      {factsOf(row)}
      {row.why !== undefined && (
        <>
          <br />
          {row.why.message}
        </>
      )}
    </div>
  )
}

function ZoomButtons({
  zoom,
  showAll,
}: {
  readonly zoom: (factor: number) => void
  readonly showAll: () => void
}): JSX.Element {
  return (
    <div class="map-buttons">
      <button type="button" onClick={() => zoom(1.5)} aria-label="Zoom in">
        +
      </button>
      <button type="button" onClick={() => zoom(1 / 1.5)} aria-label="Zoom out">
        −
      </button>
      <button type="button" onClick={showAll}>
        Show all
      </button>
    </div>
  )
}

function Legend(): JSX.Element {
  return (
    <ul class="legend">
      <li>
        <span class="key fill" aria-hidden="true" /> requested
      </li>
      <li>
        <span class="key cell" aria-hidden="true" /> free
      </li>
      <li>
        <span class="key pod" aria-hidden="true" /> pod, from near
      </li>
      <li>
        <span class="key pending" aria-hidden="true" /> starting
      </li>
      <li>
        <span class="key deleting" aria-hidden="true" /> deleting
      </li>
      <li>
        <span class="key drifted" aria-hidden="true" /> drifted
      </li>
      <li>
        <span class="key bad" aria-hidden="true" /> not Ready
      </li>
    </ul>
  )
}
