import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { loadSharedScanModule, openKernels, type ScanKernels } from './module.ts'
import { type NumberedRows, type ScanWorkerData, type SharedRows, SliceWorker } from './scan-job.ts'

// Computes slices of scans until the thread is terminated. The thread never returns to its event loop.
const jobs = new SliceWorker(workerData as ScanWorkerData)

const segments = new Map<number, { rows: SharedRows; kernels: ScanKernels }>()

for (;;) {
  const job = jobs.current
  for (;;) {
    const received = receiveMessageOnPort(parentPort!)
    if (!received) break
    const { id, rows } = received.message as NumberedRows
    segments.set(id, { rows, kernels: openKernels(loadSharedScanModule(), rows.memory) })
  }
  jobs.work(job, (segment, { from, count, resultsOffset }) => {
    const { rows, kernels } = segments.get(segment)!
    kernels.quantizedDotInOrder(
      0,
      rows.rowsOffset + from * rows.strideBytes,
      count,
      rows.strideBytes,
      rows.resultsOffset + resultsOffset,
    )
  })
  jobs.waitAfter(job)
}
