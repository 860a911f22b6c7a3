"""The same figures for other people's tools: TensorBoard, MLflow, W&B, Prometheus."""
