"""Exports the same metrics to other people's tools: TensorBoard, MLflow, W&B, Prometheus."""
